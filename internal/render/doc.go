// Package render writes objects for people to read: as YAML, as indented JSON, as
// a list of differences, as one line.
//
// Objects come from whoever may write to a cluster, and one of 1 MB can be made to
// fill gigabytes: nested 9,000 deep, each of 100,000 lines is indented by 18 KB and
// has a path as long. So there are two kinds of functions here:
//
//   - What is looked at ([Lines], [Differences], [Brief], [Cut]) is bounded, whatever
//     the object is. What is left out is counted, so that whoever shows it can say
//     so, and say how to get the whole.
//   - What is taken away ([WriteYAML], [WriteJSON]) is never cut. What is nested
//     deeper than [MaxDepth], or comes after indentation has taken up too much, is
//     written in one line, which is valid YAML and JSON too. So the text is at most
//     a small multiple of the object's compact JSON, and it is written while it is
//     made.
package render

const (
	// MaxDepth is how many levels of an object are written line by line. The
	// deepest resource definitions in use nest some forty levels.
	MaxDepth = 100
	// MaxPath is how many bytes of a path are shown.
	MaxPath = 1000

	// freeIndent is how many bytes of indentation a text may have in any case, and
	// indentPerByte how many more for each byte of its content. Indentation of
	// pods takes 2 bytes for each, of the deepest definitions 6.
	freeIndent    = 1 << 20
	indentPerByte = 16
)
