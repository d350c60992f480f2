// Package protobuf decodes objects from protobuf so that equal parts exist once.
//
//   - Values and errors are those of the generated code, which decodes whatever is
//     irregular.
//   - A part is found by the bytes that it was made of, before it is decoded.
//   - An update takes over what its object's last state has, where the bytes are the
//     same.
//   - The bytes that were given are neither kept nor written to.
//
// It imports packages pool, recent, shape and, to compare values, share. It imports no
// other package of this module.
package protobuf
