package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn"
)

// A state that is being filled is seen by nobody, in Go or in SQL, before its end,
// and not after a crash either.
func TestFill(t *testing.T) {
	dir := directory(t)
	db := open(t, dir, Options{})
	s := openTabular(t, db, "things")
	look := func(s *Store[thing], v tarn.Version, n int) {
		t.Helper()
		if s.Version() != v || s.Len() != n || len(content(s)) != n {
			t.Errorf("at version %q there are %d objects (Len %d), want %d at %q", s.Version(), len(content(s)), s.Len(), n, v)
		}
		if _, ok := s.Get("a"); ok != (n > 0) {
			t.Errorf("a is there: %v", ok)
		}
		rows, err := Query(t.Context(), s.c.db.Dir(), "SELECT count(*) FROM things", Limits{})
		must(t, err)
		if got := rows.Rows[0][0]; got != int64(n) {
			t.Errorf("SQL sees %v objects, want %d", got, n)
		}
		rows, err = Query(t.Context(), s.c.db.Dir(), "SELECT count(DISTINCT id) FROM things_labels", Limits{})
		must(t, err)
		if got := rows.Rows[0][0]; got != int64(n) {
			t.Errorf("SQL sees labels of %v objects, want %d", got, n)
		}
	}
	must(t, s.Fill([]tarn.Change[thing]{put("old", 1), put("a", 1)}, true))
	must(t, s.Fill([]tarn.Change[thing]{put("b", 1), put("c", 1)}, true)) // begun again
	must(t, s.Fill([]tarn.Change[thing]{put("a", 2), gone("c")}, false))
	look(s, "", 0)

	crashed := open(t, copyOf(t, dir), Options{})
	again := openTabular(t, crashed, "things")
	look(again, "", 0)
	if kept, err := again.Restore(t.Context()); err != nil || kept.Version() != "" {
		t.Errorf("after a crash there is %+v, %v", kept, err)
	}
	look(again, "", 0)

	must(t, s.Filled(tarn.At("7")))
	look(s, "7", 2)
	if kept, err := s.Restore(t.Context()); err != nil || kept.Version() != "7" {
		t.Errorf("a state that was filled is restored as %+v, %v", kept, err)
	}
}

// An Apply after a state that was given up does not bring its parts to light.
func TestFillGivenUp(t *testing.T) {
	s := openStore(t, open(t, directory(t), Options{}))
	must(t, s.Fill([]tarn.Change[thing]{put("a", 1)}, true))
	must(t, s.Apply([]tarn.Change[thing]{put("b", 2)}, tarn.At("2")))
	expect(t, s, "2", map[tarn.Key]int{"b": 2})
}

// Nor does one that had to be tried twice.
func TestFillGivenUpOnAFullDisk(t *testing.T) {
	disk, opts := newBadDisk(t)
	s := openStore(t, open(t, directory(t), opts))
	must(t, s.Fill([]tarn.Change[thing]{put("a", 1)}, true))
	disk.failing(func(op, name string) error { return sqlite3.FULL })
	if err := s.Apply([]tarn.Change[thing]{put("b", 2)}, tarn.At("2")); !errors.Is(err, sqlite3.FULL) {
		t.Errorf("a full disk says %v", err)
	}
	disk.failing(nil)
	must(t, s.Apply([]tarn.Change[thing]{put("b", 2)}, tarn.At("2")))
	expect(t, s, "2", map[tarn.Key]int{"b": 2})
}

// endless is a collection that is made while it is read: it can have any size, and is
// stored nowhere.
type endless struct {
	size int
	// look is called at each request, between.
	look func()
}

func (e endless) thing(i int) thing {
	name := "ns/thing-" + strconv.Itoa(i)
	return thing{Name: name, N: i, Pad: strings.Repeat(name+" ", 100)} // 2 KB
}

func (e endless) List(_ context.Context, q tarn.ListQuery) (page tarn.Page[thing], err error) {
	e.look()
	from, _ := strconv.Atoi(q.Continue)
	to := e.size
	if q.Limit > 0 {
		to = min(from+int(q.Limit), e.size)
	}
	for i := from; i < to; i++ {
		page.Items = append(page.Items, e.thing(i))
	}
	if page.Version = "1"; to < e.size {
		page.Continue = strconv.Itoa(to)
	}
	return page, nil
}

func (e endless) Watch(_ context.Context, q tarn.WatchQuery) (tarn.Stream[thing], error) {
	at := e.size + 1
	if q.Initial {
		at = 0
	}
	return &endlessStream{e, at}, nil
}

func (e endless) Describe(t thing) (tarn.Meta, error) {
	return tarn.Meta{Key: tarn.Key(t.Name), Version: "1"}, nil
}

type endlessStream struct {
	endless
	at int
}

func (s *endlessStream) Next(ctx context.Context, buf []tarn.Event[thing]) (n int, err error) {
	if s.at%1000 == 0 {
		s.look()
	}
	for ; n < len(buf) && s.at < s.size; n++ {
		buf[n] = tarn.Event[thing]{Type: tarn.EventAdded, Object: s.thing(s.at)}
		if s.at++; s.at%1000 == 0 {
			return n + 1, nil
		}
	}
	switch {
	case n > 0:
		return n, nil
	case s.at == s.size:
		s.at++
		buf[0] = tarn.Event[thing]{Type: tarn.EventBookmark, Version: "1", InitialEnd: true}
		return 1, nil
	}
	<-ctx.Done()
	return 0, io.EOF
}

func (s *endlessStream) Close() {}

// The memory of a replica on disk only does not grow with the number of its
// objects while it is first filled, from a list or from a stream.
func TestFirstStateDoesNotPassThroughMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("it fills 12,000 objects")
	}
	for _, streamed := range []bool{false, true} {
		t.Run(fmt.Sprint("streamed: ", streamed), func(t *testing.T) {
			few, many := peakOfFilling(t, 1_000, streamed), peakOfFilling(t, 5_000, streamed)
			t.Logf("1,000 objects: %d KB, 5,000 objects: %d KB", few>>10, many>>10)
			if many > few+few/2 {
				t.Errorf("filling 5,000 objects took %d KB of heap, 1,000 took %d KB", many>>10, few>>10)
			}
		})
	}
}

// peakOfFilling is the largest live heap while a replica is filled.
func peakOfFilling(t *testing.T, size int, streamed bool) uint64 {
	db := open(t, directory(t), Options{})
	defer db.Close()
	must(t, db.writer.Exec("PRAGMA cache_size=-1000")) // which is bounded too, by more than few objects have
	must(t, db.writer.Exec("PRAGMA wal_autocheckpoint=100"))
	s := openStore(t, db)
	var peak uint64
	source := endless{size: size, look: func() {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		peak = max(peak, m.HeapAlloc)
	}}
	replica, err := tarn.NewReplica(source, tarn.ReadStore[thing](s), tarn.Options[thing]{Name: "endless", WatchList: streamed})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { _ = replica.Run(ctx) }()
	must(t, replica.WaitSynced(t.Context()))
	if replica.Len() != size {
		t.Errorf("%d objects are there, of %d", replica.Len(), size)
	}
	cancel()
	<-replica.Done()
	return peak
}

// A disk that fills up in the middle of a first state leaves nothing to be seen,
// and the state is taken when there is room again.
func TestFillOnAFullDisk(t *testing.T) {
	disk, opts := newBadDisk(t)
	s := openStore(t, open(t, directory(t), opts))
	must(t, s.Fill([]tarn.Change[thing]{put("a", 1)}, true))
	disk.failing(func(op, name string) error { return sqlite3.FULL })
	if err := s.Fill([]tarn.Change[thing]{put("b", 1)}, false); !errors.Is(err, sqlite3.FULL) {
		t.Errorf("a full disk says %v", err)
	}
	disk.failing(nil)
	expect(t, s, "", map[tarn.Key]int{})
	must(t, s.Fill([]tarn.Change[thing]{put("c", 1)}, true))
	must(t, s.Filled(tarn.At("3")))
	expect(t, s, "3", map[tarn.Key]int{"c": 1})
}
