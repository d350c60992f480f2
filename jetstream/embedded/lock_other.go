//go:build !unix

package embedded

import "os"

// lockDirectory does nothing where files cannot be locked as Unix does: there, nobody is kept
// from starting two servers in one directory.
func lockDirectory(string) (*os.File, error) { return nil, nil }
