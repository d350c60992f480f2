package memory

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/memory/query"
)

// TestWalksGiveWay has one processor, and a writer that is stalled within a write:
// it must not have to wait for the end of a walk.
func TestWalksGiveWay(t *testing.T) {
	s := New[int]()
	var items []tarn.Item[int]
	for i := range 5_000 {
		items = append(items, tarn.Item[int]{Meta: tarn.Meta{Key: tarn.Key(fmt.Sprintf("%05d", i))}, Object: i})
	}
	if err := s.Replace(items, tarn.At("1")); err != nil {
		t.Fatal(err)
	}
	everything := query.Where().Limit(len(items))
	for name, walk := range map[string]func(){
		"All": func() {
			for range s.All() {
			}
		},
		"List":   func() { s.List() },
		"Select": func() { s.Select(everything) },
	} {
		t.Run(name, func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			s.writing.Lock()
			var written atomic.Bool
			done := make(chan struct{})
			go func() {
				s.writing.Unlock()
				written.Store(true)
				close(done)
			}()
			walk()
			early := written.Load()
			<-done
			if !early {
				t.Error("the writer has waited for the walk to end")
			}
		})
	}
}
