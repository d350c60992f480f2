//go:build !unix

package guard

import "errors"

// Supported says whether the system has memory that can be made read-only.
const Supported = false

func reserve(int) ([]byte, error) {
	return nil, errors.New("guard: this system has no memory that can be made read-only")
}

func protect([]byte) error { return nil }
