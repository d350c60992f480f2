package jetstream

import (
	"runtime"
	"slices"
	"sync"

	"github.com/tarnproject/tarn/kube/wire"
)

// space is memory that messages are made of. It is used by one part of a commit after the
// other: to allocate it costs more than to fill it.
type space struct {
	data   []byte
	fields header
}

var spaces = sync.Pool{New: func() any { return &space{} }}

func newSpace() *space { return spaces.Get().(*space) }

// free gives the space to others: its messages are no longer used.
func (s *space) free() {
	clear(s.fields[:cap(s.fields)]) // holds no object's memory
	s.data, s.fields = s.data[:0], s.fields[:0]
	spaces.Put(s)
}

// writer makes messages in a space. Each goroutine has one.
type writer[T any] struct {
	*space
	encode func(buf []byte, object T) ([]byte, error)
}

// object appends an object, and returns its bytes.
func (w *writer[T]) object(object T) ([]byte, error) {
	from := len(w.data)
	after, err := w.encode(w.data, object)
	if err != nil {
		return nil, err
	}
	w.data = after
	return after[from:len(after):len(after)], nil
}

// encoders encode the objects of a commit, one for each goroutine that does.
//
// Kubernetes objects of a commit have much in common, which one encoder encodes once. So one
// goroutine encodes more of them than a server stores, and several would each have to learn
// what they have in common.
type encoders[T any] struct {
	each  []func(buf []byte, object T) ([]byte, error)
	close func()
}

// newEncoders returns what encodes so many objects. The caller closes it.
func newEncoders[T any](codec Codec[T], objects int) encoders[T] {
	if _, shares := codec.(sharing); shares && objects > fewObjects {
		encoder := wire.NewJSONEncoder()
		encode := func(buf []byte, object T) ([]byte, error) { return encoder.Append(buf, object) }
		return encoders[T]{[]func([]byte, T) ([]byte, error){encode}, encoder.Close}
	}
	return encoders[T]{slices.Repeat([]func([]byte, T) ([]byte, error){codec.Append}, workersFor(objects)), func() {}}
}

// fewObjects is how many objects are encoded by one goroutine at least.
const fewObjects = 16

func workersFor(objects int) int { return min(runtime.GOMAXPROCS(0), objects/fewObjects+1) }

// onAll divides n objects among goroutines, with a writer for each, and returns the spaces
// that these have filled. The caller frees them.
func (e encoders[T]) onAll(n int, do func(from, to int, w *writer[T])) []*space {
	workers := min(workersFor(n), len(e.each))
	used := make([]*space, workers)
	var working sync.WaitGroup
	for i := range workers {
		used[i] = newSpace()
		work := func() { do(n*i/workers, n*(i+1)/workers, &writer[T]{used[i], e.each[i]}) }
		if i == workers-1 {
			work()
		} else {
			working.Go(work)
		}
	}
	working.Wait()
	return used
}
