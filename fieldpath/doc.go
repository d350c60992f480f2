// Package fieldpath reads fields of objects by the names that they have in JSON:
//
//	spec.nodeName
//	metadata.labels[app]
//	metadata.annotations['example.com/owner']
//	status.containerStatuses[0].ready
//	spec.containers[*].image
//
// The same path reads a typed struct and the decoded JSON (map[string]any) of the
// same object, and finds the same values in both: a field that JSON would leave out
// is missing here too. For a struct the path is compiled once per Go type into
// offsets, so that reading a string, a number or a bool allocates nothing and costs
// a few nanoseconds. A path that the type does not have is an error that names the
// nearest existing one.
//
// The result is a [Value], which can be compared with any other, so that objects
// can be sorted and indexed by any field.
package fieldpath
