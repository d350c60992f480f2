//go:build !unix

package relay

import (
	"errors"
	"os"
)

// lockDirectory refuses: two relays would damage a directory without a lock.
func lockDirectory(dir string) (*os.File, error) {
	if dir == "" {
		return nil, nil
	}
	return nil, errors.New("relay: a directory needs a system with locks of files, as Unix has")
}
