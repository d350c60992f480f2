// Package json decodes objects from JSON so that equal parts exist once.
//
//   - Values and errors are those of the stock decoder, which decodes whatever is
//     irregular.
//   - A part is found by the bytes that it was made of, before it is decoded.
//   - The bytes that were given are neither kept nor written to.
//
// It imports packages pool, recent and shape, and no other package of this module.
package json
