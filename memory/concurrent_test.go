package memory

import (
	"strconv"
	"sync"
	"testing"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/testsize"
)

// TestReadersSeeWholeStates writes states in which every object carries the state's
// own number, and lets readers look for a mix.
func TestReadersSeeWholeStates(t *testing.T) {
	const states, width = 400, 8
	s := New[int]()
	number := func(o int) ([]string, error) { return []string{strconv.Itoa(o)}, nil }
	if err := s.AddIndexes(map[string]func(int) ([]string, error){"number": number}); err != nil {
		t.Fatal(err)
	}
	write := func(n int) {
		version := tarn.Version(strconv.Itoa(n))
		var items []tarn.Item[int]
		var changes []tarn.Change[int]
		for i := range width {
			key := tarn.Key(strconv.Itoa(i))
			items = append(items, tarn.Item[int]{Meta: tarn.Meta{Key: key}, Object: n})
			changes = append(changes, tarn.Change[int]{Type: tarn.Update, Key: key, Object: n})
		}
		var err error
		switch n % 3 {
		case 0:
			err = s.Replace(items, tarn.At(version))
		case 1:
			err = s.Apply(changes, tarn.At(version))
		case 2:
			err = s.Batch(func(w *Writer[int]) {
				for _, c := range changes {
					w.Put(c.Key, c.Object)
				}
				w.SetVersion(version)
			})
		}
		if err != nil {
			t.Error(err)
		}
	}
	write(1)

	look := func() {
		before := atoi(t, string(s.Version()))
		state := -1
		for _, o := range s.All() {
			if state >= 0 && o != state {
				t.Errorf("All mixes %d and %d", state, o)
			}
			state = o
		}
		if after := atoi(t, string(s.Version())); state < before || state > after {
			t.Errorf("content %d, but the version went from %d to %d", state, before, after)
		}
		if values, err := s.IndexValues("number"); err != nil || len(values) != 1 {
			t.Errorf("the index shows states %v, %v", values, err)
		}
		found, err := s.ByIndex("number", strconv.Itoa(state))
		if err != nil || len(found) != 0 && len(found) != width {
			t.Errorf("the index found %d of %d, %v", len(found), width, err)
		}
		for _, o := range found {
			if o != state {
				t.Errorf("the index of %d gave %d", state, o)
			}
		}
		if n := s.Len(); n != width {
			t.Errorf("%d objects", n)
		}
	}

	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					look()
				}
			}
		})
	}
	for n := 2; n <= states; n++ {
		write(n)
	}
	close(done)
	readers.Wait()
	look()
}

// A key that is written again and again exists at every moment, with a number that
// never decreases.
func TestGetOfABusyKey(t *testing.T) {
	s := New[int]()
	_ = s.Put("busy", 0)
	done := make(chan struct{})
	var reading sync.WaitGroup
	for range 2 {
		reading.Go(func() {
			for last := 0; ; {
				select {
				case <-done:
					return
				default:
				}
				for range 100 {
					n, ok := s.Get("busy")
					if !ok || n < last {
						t.Errorf("%d, %t after %d", n, ok, last)
						return
					}
					last = n
				}
			}
		})
	}
	for n := range testsize.Of(200_000, 20_000) {
		_ = s.Put("busy", n)
	}
	close(done)
	reading.Wait()
}

func atoi(t *testing.T, s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Error(err)
	}
	return n
}
