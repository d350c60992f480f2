package web

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// reloaded is a value that is read from files, and read again when one of them
// changes: a renewed certificate, a rotated token.
//
// It checks the files when the value is used, at most once a second. Why not file
// notifications: network file systems do not send them, and a mounted Kubernetes
// Secret changes through a symbolic link in another directory.
//
// If the files cannot be used, it reports that and keeps the last good value: a
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

// lookEvery is how often the files are checked.
const lookEvery = time.Second

// newReloaded reads the files for the first time.
func newReloaded[T any](read func() (T, error), failed func(error), files ...string) (*reloaded[T], error) {
	r := &reloaded[T]{files: files, read: read, failed: failed}
	r.known, r.looked = r.look(), time.Now()
	var err error
	r.value, err = read()
	return r, err
}

// get returns the newest value.
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

// look returns nil for a file that does not exist.
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

// Authorities reads certificates of authorities from a file, and again when it changes.
func Authorities(file string, logger *slog.Logger) (func() *x509.CertPool, error) {
	read := func() (*x509.CertPool, error) {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s has no certificates: PEM is wanted, as in the file of the API server's --client-ca-file", file)
		}
		return pool, nil
	}
	pool, err := newReloaded(read, func(err error) {
		logger.Error("the authorities of client certificates have changed and cannot be used; those before stay", "error", err)
	}, file)
	if err != nil {
		return nil, err
	}
	return pool.get, nil
}

// Certificate reads a certificate and its key for a server, and again when the files
// change. It returns nil without an error if there are no files.
func Certificate(certFile, keyFile string, logger *slog.Logger) (func(*tls.ClientHelloInfo) (*tls.Certificate, error), error) {
	certificate, err := Options{CertFile: certFile, KeyFile: keyFile, Logger: logger}.certificate()
	if certificate == nil || err != nil {
		return nil, err
	}
	return func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return certificate.get(), nil }, nil
}
