// Package wire decodes Kubernetes objects so that equal parts exist once.
//
// Most of an object is a copy of something already in memory: the pods of one
// ReplicaSet have the same containers, environments, tolerations, owners. A [Decoder]
// makes objects of one type from protobuf or JSON; before it decodes a list, a map or
// a nested message, it looks in a [pool.Pool] for one that was made of the same bytes, and
// points to that. A [share.Sharer] does the same for objects that are decoded already.
//
// What this means for those who use the objects:
//
//   - The values are exactly those of the stock decoders. What is irregular in any way
//     is left to them, object by object.
//   - Objects are read-only, as those of any informer are. DeepCopy before writing; an
//     append copies by itself, for shared slices have no room to grow.
//   - A program that writes to an object by mistake changes that object, and those that
//     share the very part. Metadata but for the managed fields, and single values that are
//     pointed to, belong to one object. Parts are verified when they are used again, at
//     most once a minute, and every five minutes by a [Guard], which finds the objects
//     that have what was written to and has them read again.
//   - The strings of an object lie next to each other in memory, so that keeping one of
//     them keeps them all. Clone a string that must outlive its object by far.
package wire
