package query

import (
	"iter"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/fieldpath"
)

// A State is one state of a store, for a query.
//
//   - It does not change during a query.
//   - Any number of goroutines may use it.
type State[T any] interface {
	// Version is the version of the objects.
	Version() tarn.Version
	// Len counts the objects.
	Len() int
	// CountKeys counts the objects whose keys lie in a span.
	CountKeys(keys Span) int
	// Scan yields the objects whose keys lie in a span, in the order of keys, until
	// yield returns false.
	Scan(keys Span, yield func(tarn.Key, T) bool)

	// Indexes are all indexes.
	Indexes() iter.Seq[Index[T]]
	// Index finds an index by name, and returns an error if there is none.
	Index(name string) (Index[T], error)
	// ScanIndex yields the objects that an index has in spans of values and whose
	// keys lie in a span, each once and in the order of keys, until yield returns
	// false.
	ScanIndex(x Index[T], values []Span, keys Span, yield func(tarn.Key, T) bool)
}

// An Index is an index of a [State].
type Index[T any] interface {
	Name() string
	// Paths are the fields of the index, in this order; an entry has their values
	// as [fieldpath.Value.AppendOrdered] writes them. An index by function has
	// none.
	Paths() []*fieldpath.Path
	// Spans returns the spans of values with this text.
	Spans(text string) []Span
	// Count counts the objects in spans of values, up to most.
	Count(values []Span, most int) int
	// Finds returns a function that says whether the index has an object under this
	// text. One goroutine uses it.
	Finds(text string) func(object T) bool
}

// A Span is a range of keys or of values of an index: From is in it, To is not. An
// empty To is no bound.
type Span struct{ From, To string }

// Has says whether a key or value lies in the span.
func (r Span) Has(key string) bool { return key >= r.From && (r.To == "" || key < r.To) }

// PrefixSpan is the span of all keys or values that begin with prefix.
func PrefixSpan(prefix string) Span {
	end := []byte(prefix)
	for len(end) > 0 && end[len(end)-1] == 255 {
		end = end[:len(end)-1]
	}
	if len(end) > 0 {
		end[len(end)-1]++
	}
	return Span{prefix, string(end)}
}
