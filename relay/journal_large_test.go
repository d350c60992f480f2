package relay

import (
	"crypto/sha256"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarnproject/tarn"
)

// What is written can be read again, however much the origin sends at once. Contents are divided
// into blocks that are small enough. After a gap that is too large for one, the past begins
// again: a watch from before would end within the gap, and a start would lose all after it.
func TestBlocksThatAreTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		bounds := journalBounds{bytes: 1 << 40, age: 24 * time.Hour, block: 8 << 10}
		r := newBoundedRig(t, dir, bounds)
		r.bytes = 1000 // so that the past is on disk only
		r.update(20)
		before := r.model.version
		if err := r.from(before - 10); err != nil {
			t.Fatal(err)
		}
		r.replaceAll(300)
		after := r.model.version
		r.update(20)
		if err := r.from(before - 10); err == nil {
			t.Error("a watch begins before a gap that cannot be read")
		}
		r.readsFrom(after)
		if _, err := r.disk(); err != nil {
			t.Errorf("the journal does not work: %v", err)
		}
		want := contentText(r.state)
		r.Close()
		again := newBoundedRig(t, dir, bounds)
		defer again.Close()
		if got := contentText(again.state); got != want || again.stats().version != r.model.version {
			t.Errorf("a start is at version %d, want %d, with\n%s\nwant\n%s", again.stats().version, r.model.version, got, want)
		}
		again.readsFrom(after)
	})
}

// replaceAll commits a gap in which all objects became others, which are hard to compress.
func (r *journalRig) replaceAll(objects int) {
	r.t.Helper()
	var changes []tarn.Change[Object]
	for i := range objects {
		r.model.version++
		o := r.object(fmt.Sprint("p", i), "uid", fmt.Sprintf("%x", sha256.Sum256([]byte{byte(i), byte(i >> 8)})))
		changes = append(changes, tarn.Change[Object]{Type: tarn.Update, Key: tarn.Key(o.Key()), Object: o, Version: text(o)})
	}
	time.Sleep(2 * time.Second)
	r.take(tarn.Batch[Object]{Whole: true, Changes: changes})
}

// readsFrom checks that a watch from a version gets everything up to the present one.
func (r *journalRig) readsFrom(version int64) {
	r.t.Helper()
	w, err := r.Watch(r.t.Context(), watchAfter(version))
	if err != nil {
		r.t.Errorf("a watch from %d: %v", version, err)
		return
	}
	defer w.Close()
	for at := version; at < r.stats().version; {
		events, _, err := w.Next()
		if err != nil || len(events) == 0 {
			r.t.Errorf("a watch from %d ends at %d of %d: %v", version, at, r.stats().version, err)
			return
		}
		at = events[len(events)-1].Version
	}
}
