package web

import (
	"os"
	"sync"
	"time"
)

// reloaded is a value that is made from files, and made again when one of them has
// changed: a certificate that is renewed, a token that is rotated.
//
// It looks when the value is used, at most once a second. Why not notices of the
// file system: they do not come from network file systems, and a mount of a
// Kubernetes Secret changes by a link that is exchanged, in another directory.
//
// Files that cannot be used are reported, and the last good value stays: a
// certificate is usually written before its key.
type reloaded[T any] struct {
	files  []string
	read   func() (T, error)
	failed func(error)

	mu     sync.Mutex
	value  T
	known  []os.FileInfo
	looked time.Time
}

// lookEvery is how often the files are looked at.
const lookEvery = time.Second

// newReloaded reads the files for the first time.
func newReloaded[T any](read func() (T, error), failed func(error), files ...string) (*reloaded[T], error) {
	r := &reloaded[T]{files: files, read: read, failed: failed}
	r.known, r.looked = r.look(), time.Now()
	var err error
	r.value, err = read()
	return r, err
}

// get gives the newest value.
func (r *reloaded[T]) get() T {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if now.Sub(r.looked) < lookEvery {
		return r.value
	}
	r.looked = now
	found := r.look()
	if same(r.known, found) {
		return r.value
	}
	r.known = found
	value, err := r.read()
	if err != nil {
		r.failed(err)
		return r.value
	}
	r.value = value
	return value
}

// look has nil for a file that is not there.
func (r *reloaded[T]) look() []os.FileInfo {
	found := make([]os.FileInfo, len(r.files))
	for i, file := range r.files {
		found[i], _ = os.Stat(file)
	}
	return found
}

func same(a, b []os.FileInfo) bool {
	for i := range a {
		if a[i] == nil || b[i] == nil {
			if a[i] != b[i] {
				return false
			}
			continue
		}
		if !os.SameFile(a[i], b[i]) || !a[i].ModTime().Equal(b[i].ModTime()) || a[i].Size() != b[i].Size() {
			return false
		}
	}
	return true
}
