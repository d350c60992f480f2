//go:build unix

package sqlite

// modesMatter says that a file's mode tells who may read it.
const modesMatter = true
