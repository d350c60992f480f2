// Package wire decodes Kubernetes objects so that equal parts exist once.
//
// Most of an object is a copy of something already in memory: the pods of one
// ReplicaSet have the same containers, environments, tolerations, owners. A [Decoder]
// makes objects of one type from protobuf or JSON; before it decodes a list, a map or
// a nested message, it looks in a [Pool] for one that was made of the same bytes, and
// points to that. A [Sharer] does the same for objects that are decoded already.
//
// What this means for users of the objects:
//
//   - The values are exactly those of the stock decoders, which decode every object that
//     is irregular in any way.
//   - Objects are read-only, as those of any informer are. DeepCopy before writing; an
//     append copies by itself, because shared slices have no room to grow.
//   - A program that writes to an object by mistake changes that object, and those that
//     share the very part. Metadata other than the managed fields, and single values
//     behind pointers, belong to one object. Parts are verified when they are used again,
//     at most once a minute, and every five minutes by a [Verifier], which finds the affected
//     objects and has them read again.
//   - The strings of an object lie next to each other in memory, so that keeping one of
//     them keeps them all. Clone a string that must outlive its object by far.
//
// The package is a facade. The formats, sharing by value and the pool are internal
// packages; their doc.go files say what each promises and imports.
package wire
