package tarn

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"testing"
	"time"
)

// texts is a source and a store of texts whose key and version are their first bytes, as
// those of an object that a decoder cut out of one text.
type texts struct{ held map[Key]string }

func (*texts) List(context.Context, ListQuery) (Page[string], error) {
	return Page[string]{}, errors.ErrUnsupported
}

func (*texts) Watch(context.Context, WatchQuery) (Stream[string], error) {
	return nil, errors.ErrUnsupported
}

func (*texts) Describe(text string) (Meta, error) {
	return Meta{Key: Key(text[:4]), Version: Version(text[4:5])}, nil
}

func (s *texts) Replace([]Item[string], Position) error { return errors.ErrUnsupported }
func (s *texts) Apply([]Change[string], Position) error { return nil }
func (s *texts) Get(key Key) (string, bool)             { text, ok := s.held[key]; return text, ok }
func (s *texts) All() iter.Seq2[Key, string]            { return func(func(Key, string) bool) {} }
func (s *texts) Len() int                               { return len(s.held) }
func (s *texts) Version() Version                       { return "" }
func textOf(i, size int) string                         { return fmt.Sprintf("%04d5", i) + strings.Repeat("x", size) }
func badText(text string) BadObject {
	return BadObject{Key: Key(text[:4]), Version: Version(text[4:5]), Err: errors.New("bad")}
}

// What is remembered of an object must not keep its whole text in memory.
func TestTextOfObjectsIsNotKept(t *testing.T) {
	const objects, size = 200, 64 << 10
	store := &texts{held: map[Key]string{}}
	for i := range objects {
		store.held[Key(textOf(i, 0)[:4])] = textOf(i, 0)
	}
	r, err := NewReflector[string](store, store, Options[string]{OnBad: func(context.Context, BadObject) {}})
	if err != nil {
		t.Fatal(err)
	}
	r.synced = true // before, versions do not prove that an object is unchanged
	var deleted tombstones
	var bad quarantine
	confirmed, rejected := r.newRelisting(), r.newRelisting()
	for name, remember := range map[string]func(text string){
		"a delete":                     func(text string) { deleted.put(Key(text[:4]), Version(text[4:5])) },
		"a bad object":                 func(text string) { bad.put(badText(text), false, time.Time{}) },
		"an unchanged object":          func(text string) { confirmed.put(t.Context(), text) },
		"a bad object of a whole list": func(text string) { rejected.bad(t.Context(), badText(text)) },
	} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for i := range objects {
			remember(textOf(i, size))
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if held := int64(after.HeapAlloc) - int64(before.HeapAlloc); held > objects*size/4 {
			t.Errorf("%s: %d objects hold %d KiB", name, objects, held>>10)
		}
	}
	runtime.KeepAlive([]any{&deleted, &bad, confirmed, rejected})
}
