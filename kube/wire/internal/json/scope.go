package json

import (
	"strings"

	"github.com/tarnproject/tarn/kube/wire/internal/pool"
	"github.com/tarnproject/tarn/kube/wire/internal/shape"
)

// scope is what a decoder's options say about one place of the object. A value
// with a scope is not shared as a whole. Values inside it that have no scope of
// their own may be.
type scope struct {
	drop   bool // the value is skipped
	within map[string]*scope
}

// scopeOf reads a decoder's options. The metadata always has a scope: in an
// unstructured object it is a map that the object's owner may write to.
func scopeOf(opts pool.Options) *scope {
	root := &scope{}
	root.at("metadata")
	if !opts.SharedMetadata {
		for _, name := range shape.PrivateMetadata {
			root.at("metadata", name)
		}
	}
	for _, path := range opts.Drop {
		root.at(strings.Split(path, ".")...).drop = true
	}
	return root
}

// at returns the scope of the value at path, and makes it if need be.
func (s *scope) at(path ...string) *scope {
	for _, name := range path {
		if s.within == nil {
			s.within = map[string]*scope{}
		}
		next := s.within[name]
		if next == nil {
			next = &scope{}
			s.within[name] = next
		}
		s = next
	}
	return s
}

// in returns the scope of a member; s may be nil.
func (s *scope) in(name string) *scope {
	if s == nil {
		return nil
	}
	return s.within[name]
}
