// Package share makes objects that are decoded already share their equal parts.
//
//   - The content of an object does not change, to the bit.
//   - A part is found by a hash of its content, and compared before it is used.
//   - The object that was given is not written to, unless the caller owns it.
//
// It imports packages pool, recent and shape, and no other package of this module.
package share
