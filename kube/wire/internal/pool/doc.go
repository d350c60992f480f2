// Package pool holds the parts that objects share, and finds writes to them.
//
//   - A part is found by a key of 128 bits, which is made of the bytes or of the content
//     that the part was made of.
//   - A part that is in use is found. A part that nobody uses is released within a few
//     garbage collections.
//   - A part that a program wrote to is not handed out any more, and is reported.
//
// It imports packages shape and recent, and no other package of this module. It knows
// no format: the packages that decode or compare import it.
package pool
