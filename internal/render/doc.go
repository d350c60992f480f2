// Package render writes objects for people to read: as YAML, as indented JSON, as
// a list of differences, as one line.
//
// Any user of a cluster can write an object of 1 MB that fills gigabytes when it is
// shown: nested 9,000 levels deep, each of its 100,000 lines has an indentation of
// 18 KB and a path of the same length. So this package has two kinds of functions:
//
//   - [Lines], [Differences], [Brief] and [Cut] are for views. Their output is
//     bounded. They report what they leave out, so that the view can say how to get
//     the whole object.
//   - [WriteYAML] and [WriteJSON] are for exports. They never cut. A value that is
//     nested deeper than [MaxDepth], or that would need too much indentation, is
//     written on one line, which is valid YAML and JSON too. The output is at most a
//     small multiple of the object's compact JSON, and it is streamed.
package render

const (
	// MaxDepth is how many levels of an object are written line by line. The
	// deepest custom resource definitions in use have about forty.
	MaxDepth = 100
	// MaxPath is how many bytes of a path are shown.
	MaxPath = 1000

	// freeIndent is how many bytes of indentation an export may always have, and
	// indentPerByte how many more per byte of content. Pods need 2 bytes per byte,
	// the deepest definitions 6.
	freeIndent    = 1 << 20
	indentPerByte = 16
)
