package jetstream

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/enginetest"
)

// largeBatch has more changes than an atomic batch, the states of each object in order.
func largeBatch() tarn.Batch[object] {
	b := to("9000")
	for i := range 2500 {
		b.Changes = append(b.Changes, change(tarn.Update, tarn.Key(fmt.Sprint("ns/", i%2000)), version(i+10), "large"))
	}
	return b
}

// onceEach fails unless the stream has the states of a batch, each once and in order.
func onceEach(t *testing.T, b bucketClient, want tarn.Batch[object]) {
	t.Helper()
	seen, err := everyState(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	var model enginetest.Model
	for _, c := range want.Changes {
		model.Add(enginetest.State{Key: c.Key, Version: c.Version})
	}
	if r := model.Compare(seen, nil); !r.Good() || r.Seen != len(want.Changes) {
		t.Error(r)
	}
}

// begin writes the first n messages of a commit, and then nothing, as a feeder that loses its
// connection.
func begin(t *testing.T, s *Sink[object], b tarn.Batch[object], n int) {
	t.Helper()
	s.pending = "begun"
	w, err := s.writing(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	parts := make(chan part, n/chunk+1)
	if err := s.encode(w, func(p part) bool {
		parts <- p
		return len(parts) < n/chunk
	}); err != nil {
		t.Fatal(err)
	}
	close(parts)
	if err := s.writeEach(t.Context(), w, parts); err != nil || s.known {
		t.Fatalf("a commit without an end is known to be written (%v)", err)
	}
}

// A commit that was begun is continued by the same feeder, and by another one, and nothing is
// there twice.
func TestInterruptedChain(t *testing.T) {
	for _, again := range []bool{true, false} {
		t.Run(fmt.Sprint("again ", again), func(t *testing.T) {
			js := startServer(t).connect()
			b := Bucket{Name: "b", Events: true}
			s := opened(t, js, b)
			large := largeBatch()
			begin(t, s, large, 5*chunk)
			if again {
				large.Again = true
			} else {
				s.Close()
				s = opened(t, js, b)
				large.Whole = true
			}
			commit(t, s, large)
			defer s.Close()
			onceEach(t, s.bucketClient, large)
			if n := written(t, s); n != 2500 {
				t.Errorf("%d messages are counted, want 2500", n)
			}
			page, err := newSource(t, js, b).List(t.Context(), tarn.ListQuery{})
			if err != nil || len(page.Items) != 2000 || page.Version != "9000" {
				t.Errorf("the list has %d items at %s (%v)", len(page.Items), page.Version, err)
			}
		})
	}
}

// startChain writes a checkpoint with an id, and continues after it.
func startChain(t *testing.T, s *Sink[object]) *chain {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.at.Checkpoint
	next.Incomplete = true
	if err := s.writeAs(t.Context(), "id", nil, next); err != nil {
		t.Fatal(err)
	}
	c, err := newChain(s.js.Conn(), "id", s.at.sequence)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	return c
}

// sendKeys sends messages of the keys k.from to k.to, and waits for their answers.
func sendKeys(t *testing.T, s *Sink[object], c *chain, from, to int) error {
	t.Helper()
	for i := from; i < to; i++ {
		if err := c.send(t.Context(), message{s.bucket.prefix() + fmt.Sprint("k.", i), nil, nil}, i == to-1); err != nil {
			return err
		}
	}
	return c.end(t.Context())
}

// has fails unless the keys before a number are there, and it and some after it are not.
func has(t *testing.T, s *Sink[object], number int) {
	t.Helper()
	for i := number - 3; i < number+10; i++ {
		if _, found, err := s.last(t.Context(), fmt.Sprint("k.", i)); found != (i < number) || err != nil {
			t.Errorf("message %d is there: %t (%v)", i, found, err)
		}
	}
}

// What a feeder sent before another one took over does not arrive after it, however much the
// other one writes.
func TestLateChain(t *testing.T) {
	server := startServer(t)
	b := Bucket{Name: "b", Events: true, Lease: 200 * time.Millisecond}
	first := opened(t, server.connect(), b)
	first.stop()
	first.running.Wait()
	c := startChain(t, first)
	if err := sendKeys(t, first, c, 0, 200); err != nil {
		t.Fatal(err)
	}
	second := newSink(t, server.connect(), b)
	eventually(t, "the second takes over", func() bool {
		_, err := second.Open(t.Context(), nil)
		return err == nil
	}, func() string { return "" })
	defer second.Close()
	for i := range 3 {
		commit(t, second, to(version(i+1), change(tarn.Add, "a", version(i+1), "")))
	}
	if err := sendKeys(t, first, c, 200, 300); !errors.Is(err, errOther) {
		t.Errorf("messages that arrive late are answered by %v", err)
	}
	has(t, second, 200)
}

// A message that is lost has those after it refused, and so has one that somebody else writes
// in between.
func TestHoleInChain(t *testing.T) {
	js := startServer(t).connect()
	for name, hole := range map[string]func(s *Sink[object], c *chain) error{
		"lost": func(s *Sink[object], c *chain) error {
			nowhere, err := newChain(s.js.Conn(), c.id, c.last)
			if err != nil {
				return err
			}
			defer nowhere.close()
			nowhere.lastID = c.lastID
			err = nowhere.send(t.Context(), message{"nowhere", nil, nil}, false)
			c.last, c.lastID = nowhere.last, nowhere.lastID
			return err
		},
		"another writer": func(s *Sink[object], c *chain) error {
			_, err := js.Publish(t.Context(), s.bucket.prefix()+"_mine", nil)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := opened(t, js, Bucket{Name: strings.ReplaceAll(name, " ", "_")})
			defer s.Close()
			c := startChain(t, s)
			if err := sendKeys(t, s, c, 0, 500); err != nil {
				t.Fatal(err)
			}
			if err := hole(s, c); err != nil {
				t.Fatal(err)
			}
			if err := sendKeys(t, s, c, 500, 3*chainWindow); !errors.Is(err, errOther) {
				t.Errorf("a chain with a hole ends with %v", err)
			}
			has(t, s, 500)
		})
	}
}

// Somebody who writes keys of their own to a bucket does not keep a large commit from being
// written.
func TestChainBesideOthers(t *testing.T) {
	js := startServer(t).connect()
	b := Bucket{Name: "b", History: 5}
	s := opened(t, js, b)
	defer s.Close()
	large := largeBatch()
	s.pending = "begun"
	w, err := s.writing(t.Context(), large)
	if err != nil {
		t.Fatal(err)
	}
	parts := make(chan part)
	go func() {
		defer close(parts)
		err = s.encode(w, func(p part) bool {
			if p.last { // the others are written by now
				_, err := js.Publish(t.Context(), b.prefix()+"_mine", nil)
				if err != nil {
					t.Error(err)
				}
			}
			parts <- p
			return true
		})
	}()
	if err := s.writeEach(t.Context(), w, parts); !errors.Is(err, errOther) || !s.batchesOnly {
		t.Fatalf("somebody else has written, and the commit ended with %v", err)
	}
	large.Again = true
	commit(t, s, large)
	if s.batchesOnly {
		t.Error("the next large commit is no chain")
	}
	page, err := newSource(t, js, b).List(t.Context(), tarn.ListQuery{})
	if err != nil || len(page.Items) != 2000 || page.Version != "9000" {
		t.Errorf("the list has %d items at %s (%v)", len(page.Items), page.Version, err)
	}
}

// A bucket that becomes full within a large commit says so, and takes the rest when there is
// room.
func TestFullWithinChain(t *testing.T) {
	js := startServer(t).connect()
	b := Bucket{Name: "b", History: 5, MaxBytes: 300 << 10}
	s := opened(t, js, b)
	defer s.Close()
	large := largeBatch()
	var err error
	for try := range 2 {
		large.Again = try > 0
		err = s.Commit(t.Context(), large)
	}
	if err == nil || !strings.Contains(err.Error(), "maximum bytes exceeded") {
		t.Fatalf("Commit returned %v", err)
	}
	enlarge(t, js, b)
	commit(t, s, large)
	onceEach(t, s.bucketClient, large)
}
