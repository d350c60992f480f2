package sqlite

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/changelog"
	"github.com/tarnproject/tarn/changelog/logtest"
	"github.com/tarnproject/tarn/internal/testsize"
)

// Thinning keeps the last state of each interval, deletes, and when a state was really
// superseded.
func TestThinning(t *testing.T) {
	r := newPastRig(t, History{Age: time.Hour, Thin: Thinning{After: 5 * time.Minute, Every: time.Minute}})
	r.set("ns/a", "the first")
	for i := range 600 { // ten minutes
		r.set("ns/a", fmt.Sprintf("text %d", i))
		if i == 30 {
			r.set("ns/b", "a short life")
			r.set("ns/b", "")
		}
	}
	checkSound(t, r.dir, nil)
	n, last := 0, changelog.State{}
	var wrong []string
	for e, err := range r.sink.Log().Of(t.Context(), "ns/a") {
		must(t, err)
		if e.Gap != nil {
			continue
		}
		n++
		if last.Seq > 0 && last.Until.After(e.Heard) {
			wrong = append(wrong, fmt.Sprint(last.Until, e.Heard))
		}
		if !e.Until.IsZero() && e.Until.Sub(e.Heard) > 5*time.Second {
			wrong = append(wrong, fmt.Sprintf("%s is said to have been valid for %s", e.Object, e.Until.Sub(e.Heard)))
		}
		last = e.State
	}
	if n < 300 || n > 350 || len(wrong) > 0 {
		t.Errorf("%d states are left; %v", n, wrong)
	}
	if got := r.query(Moment{}, "SELECT operation FROM objects_history WHERE key = 'ns/b' ORDER BY seq"); got != "[[added] [deleted]]" && got != "[[deleted]]" {
		t.Errorf("of a short life there is %s", got)
	}
	if got := r.query(Moment{}, "SELECT cause FROM tarn_gaps"); got != "[[thinned]]" {
		t.Errorf("the gaps are %s", got)
	}
	result, err := Moment{Time: r.now.Add(-8 * time.Minute)}.Query(t.Context(), r.dir, "SELECT key FROM objects", Limits{})
	if err != nil || len(result.Gaps) != 1 || result.Gaps[0].Cause != changelog.GapThinned {
		t.Errorf("an answer from a thinned range says %v (%v)", result, err)
	}
	bounds, err := r.sink.Log().Bounds(t.Context())
	must(t, err)
	for _, err := range r.sink.Log().After(t.Context(), bounds.First) {
		if !errors.Is(err, changelog.ErrExpired) {
			t.Errorf("a thinned range is read in order: %v", err)
		}
		break
	}
}

// A place is read with the gap if the states around it were thinned out after it was found. A
// walk during which that happens ends with an error.
func TestPlaceThatIsThinnedOut(t *testing.T) {
	r := newPastRig(t, History{Age: time.Hour, Thin: Thinning{After: 5 * time.Minute, Every: time.Minute}})
	for i := range 300 {
		r.set(tarn.Key(fmt.Sprintf("other/%d", i)), "text")
	}
	minutes := func(n int) {
		for i := range n * 60 {
			r.set("ns/a", fmt.Sprintf("text %d", i))
		}
	}
	minutes(2)
	place, err := r.sink.Log().AtTime(t.Context(), r.now.Add(-90*time.Second))
	must(t, err)
	asOf := func(between func()) (gaps []tarn.GapCause, states int, failed error) {
		for e, err := range r.sink.Log().AsOf(t.Context(), place) {
			switch {
			case err != nil:
				return gaps, states, err
			case e.Gap != nil:
				gaps = append(gaps, e.Gap.Cause)
			default:
				states++
			}
			between()
			between = func() {}
		}
		return gaps, states, nil
	}
	if gaps, n, err := asOf(func() {}); len(gaps) > 0 || n != 301 || err != nil {
		t.Fatalf("at the place there are %d states, with the gaps %v (%v)", n, gaps, err)
	}
	if gaps, n, err := asOf(func() { minutes(8) }); !errors.Is(err, changelog.ErrExpired) {
		t.Errorf("a walk during which the place is thinned out has %d states, with the gaps %v (%v)", n, gaps, err)
	}
	if gaps, n, err := asOf(func() {}); len(gaps) != 1 || gaps[0] != changelog.GapThinned || n != 301 || err != nil {
		t.Errorf("afterwards there are %d states, with the gaps %v (%v)", n, gaps, err)
	}
}

// With another interval, states that were thinned out before are thinned out again.
func TestThinningWithAnotherInterval(t *testing.T) {
	thinned := func(every time.Duration) History {
		return History{Age: time.Hour, Thin: Thinning{After: 5 * time.Minute, Every: every}}
	}
	r := newPastRig(t, thinned(time.Minute))
	for i := range 1200 { // twenty minutes
		r.set("ns/a", fmt.Sprintf("text %d", i))
	}
	old := fmt.Sprintf("SELECT count(*) FROM objects_history WHERE valid_from < %d", r.now.Add(-6*time.Minute).Unix())
	if got := r.query(Moment{}, old); got != "[[15]]" && got != "[[14]]" {
		t.Errorf("of fourteen minutes there are %s states", got)
	}
	r.reopen(thinned(10 * time.Minute))
	r.set("ns/a", "the last")
	if got := r.query(Moment{}, old); got != "[[3]]" && got != "[[2]]" {
		t.Errorf("of fourteen minutes, %s states are left in intervals of ten", got)
	}
	checkSound(t, r.dir, nil)
}

// The file stays near its bound, also with commits that are large for it, and every object
// has its state at the horizon.
func TestHistoryBytes(t *testing.T) {
	type size struct{ bound, objects, commits, changes int }
	sizes := []size{{4 << 20, 200, 300, 100}, {8 << 20, 2000, 30, 1000}}
	if testing.Short() {
		sizes = []size{{2 << 20, 100, 80, 100}, {4 << 20, 1000, 30, 500}}
	}
	for _, c := range sizes {
		t.Run(fmt.Sprint(c.objects), func(t *testing.T) {
			r := newPastRig(t, History{Bytes: int64(c.bound)})
			random := rand.New(rand.NewPCG(1, 1))
			largest, all := 0, map[tarn.Key]bool{}
			for i := range c.commits {
				b := tarn.Batch[logtest.Object]{}
				for range c.changes {
					r.now, r.version = r.now.Add(10*time.Millisecond), r.version+1
					key, v := tarn.Key(fmt.Sprintf("ns/%d", random.IntN(c.objects))), tarn.Version(fmt.Sprint(r.version))
					all[key] = true
					text := make([]byte, 300)
					for j := range text {
						text[j] = byte('a' + random.IntN(26))
					}
					b.Changes = append(b.Changes, tarn.Change[logtest.Object]{Type: tarn.Update, Key: key, Version: v, Heard: r.now, Object: logtest.Object{Key: key, Version: v, UID: "u", Text: string(text)}})
				}
				b.Positions, b.LastContact = []tarn.Position{tarn.At(tarn.Version(fmt.Sprint(r.version)))}, r.now
				must(t, r.sink.Commit(t.Context(), b))
				if i%10 == 9 {
					must(t, r.db.log.empty(r.db.writer))
					largest = max(largest, int(fileSize(filepath.Join(r.dir, fileName))))
				}
			}
			if largest > c.bound/100*105 || largest < c.bound/2 {
				t.Errorf("the file came to %.1f %% of its bound", float64(largest)/float64(c.bound)*100)
			}
			bounds, err := r.sink.Log().Bounds(t.Context())
			must(t, err)
			n := 0
			for _, err := range r.sink.Log().AsOf(t.Context(), changelog.Place{Seq: bounds.Last}) {
				must(t, err)
				n++
			}
			atHorizon := 0
			for _, err := range r.sink.Log().AsOf(t.Context(), changelog.Place{Seq: bounds.First}) {
				must(t, err)
				atHorizon++
			}
			if n != len(all) || atHorizon != len(all) || bounds.States < int64(c.objects)*5/4 {
				t.Errorf("at the horizon there are %d objects, now %d of %d, and %d states are kept", atHorizon, n, len(all), bounds.States)
			}
			checkSound(t, r.dir, nil)
			t.Logf("%.1f %% of the bound at most, %d states since %s", float64(largest)/float64(c.bound)*100, bounds.States, r.now.Sub(bounds.Since))
		})
	}
}

// The file stays near its bound whatever the clock does: it stands still, goes back with each
// commit, or is set back by an hour again and again.
func TestHistoryBytesWithAWrongClock(t *testing.T) {
	const bound = 1 << 20
	for name, next := range map[string]func(i int, now time.Time) time.Time{
		"stands still": func(_ int, now time.Time) time.Time { return now },
		"goes back":    func(_ int, now time.Time) time.Time { return now.Add(-time.Millisecond) },
		"is set back": func(i int, now time.Time) time.Time {
			if i%20 == 19 {
				return now.Add(-time.Hour)
			}
			return now.Add(time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newPastRig(t, History{Bytes: bound})
			random := rand.New(rand.NewPCG(1, 1))
			for i := range 80 {
				r.now = next(i, r.now)
				b := tarn.Batch[logtest.Object]{LastContact: r.now}
				for range 80 {
					r.version++
					key, v := tarn.Key(fmt.Sprintf("ns/%d", random.IntN(50))), tarn.Version(fmt.Sprint(r.version))
					text := make([]byte, 300)
					for j := range text {
						text[j] = byte('a' + random.IntN(26))
					}
					b.Changes = append(b.Changes, tarn.Change[logtest.Object]{Type: tarn.Update, Key: key, Version: v, Heard: r.now, Object: logtest.Object{Key: key, Version: v, UID: "u", Text: string(text)}})
				}
				b.Positions = []tarn.Position{tarn.At(tarn.Version(fmt.Sprint(r.version)))}
				must(t, r.sink.Commit(t.Context(), b))
			}
			must(t, r.db.log.empty(r.db.writer))
			if size := fileSize(filepath.Join(r.dir, fileName)); size > bound/100*110 {
				t.Errorf("the file has %.1f %% of its bound", float64(size)/bound*100)
			}
			checkSound(t, r.dir, nil)
		})
	}
}

// Bundles stay within the bound and displace no states, also if their objects cannot be
// compressed.
func TestHistoryBytesWithBundles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const bound, objects = 4 << 20, 400
		r := newBundleRig(t, Options{History: History{Bytes: bound}})
		r.sink.Close()
		sink, err := NewSink(r.db, Collection{Name: "things", Identity: "test"}, things{})
		must(t, err)
		r.sink = sink
		random := rand.New(rand.NewPCG(1, 1))
		var changes []tarn.Change[thing]
		text := func() string {
			raw := make([]byte, 2000)
			for i := range raw {
				raw[i] = byte(random.Uint32())
			}
			return base64.StdEncoding.EncodeToString(raw)
		}
		for i := range objects {
			changes = append(changes, put(fmt.Sprintf("ns/%04d", i), i))
			changes[i].Object.Pad = text()
		}
		r.commit(true, changes...)
		for i := range 3 * objects {
			c := put(fmt.Sprintf("ns/%04d", i%objects), i)
			c.Object.Pad = text()
			time.Sleep(time.Second)
			r.commit(false, c)
		}
		for range 3 {
			time.Sleep(bundleAfter)
			r.commit(false, put("ns/0000", 1))
		}
		used, err := usedBytes(r.db.writer)
		must(t, err)
		must(t, r.db.log.empty(r.db.writer))
		if size := fileSize(filepath.Join(r.dir, fileName)); size > bound/100*105 || used > bound {
			t.Errorf("the file has %.1f %% of its bound, and %.1f %% are in use", float64(size)/bound*100, float64(used)/bound*100)
		}
		if bounds, err := sink.Log().Bounds(t.Context()); err != nil || bounds.States == objects {
			t.Errorf("no past states are left (%v)", err)
		}
		r.load()
		must(t, r.db.Close())
	})
}

// At the bound of bytes the oldest states of the directory go first, also those of a
// collection that is not written any more.
func TestHistoryBytesOfSeveral(t *testing.T) {
	size := testsize.Of(2, 1)
	bound := int64(size) * 2 << 20
	r := newPastRig(t, History{Bytes: bound})
	random := rand.New(rand.NewPCG(1, 1))
	busy, err := NewSink(r.db, Collection{Name: "busy", Identity: "test"}, logged{})
	must(t, err)
	commit := func(s *Sink[logtest.Object], objects int) {
		b := tarn.Batch[logtest.Object]{}
		for range 100 {
			r.now, r.version = r.now.Add(10*time.Millisecond), r.version+1
			key, v := tarn.Key(fmt.Sprintf("ns/%d", random.IntN(objects))), tarn.Version(fmt.Sprint(r.version))
			text := make([]byte, 300)
			for j := range text {
				text[j] = byte('a' + random.IntN(26))
			}
			b.Changes = append(b.Changes, tarn.Change[logtest.Object]{Type: tarn.Update, Key: key, Version: v, Heard: r.now, Object: logtest.Object{Key: key, Version: v, UID: "u", Text: string(text)}})
		}
		b.Positions, b.LastContact = []tarn.Position{tarn.At(tarn.Version(fmt.Sprint(r.version)))}, r.now
		must(t, s.Commit(t.Context(), b))
	}
	for range 20 * size {
		commit(r.sink, 100)
	}
	quietStates := r.sink.store.c.log.state.states
	largest := int64(0)
	for i := range 125 * size {
		commit(busy, 100)
		if i == 60*size {
			commit(r.sink, 100)
		}
		if i%10 == 0 {
			must(t, r.db.log.empty(r.db.writer))
			largest = max(largest, fileSize(filepath.Join(r.dir, fileName)))
		}
	}
	if largest > bound*105/100 {
		t.Errorf("the file came to %d bytes, and the bound is %d", largest, bound)
	}
	quiet, err1 := r.sink.Log().Bounds(t.Context())
	other, err2 := busy.Log().Bounds(t.Context())
	must(t, first(err1, err2))
	if quiet.States > 300 || quietStates < 1500*int64(size) {
		t.Errorf("of %d old states %d are kept, while newer ones went", quietStates, quiet.States)
	}
	if apart := quiet.Since.Sub(other.Since).Abs(); apart > time.Second {
		t.Errorf("one history begins at %s, the other at %s", quiet.Since, other.Since)
	}
	if other.States < 500*int64(size) {
		t.Errorf("of the new states %d are kept", other.States)
	}
	n := 0
	for _, err := range r.sink.Log().AsOf(t.Context(), changelog.Place{Seq: quiet.First}) {
		must(t, err)
		n++
	}
	if n != 100 {
		t.Errorf("at the horizon of the quiet one there are %d objects", n)
	}
	checkSound(t, r.dir, nil)
	r.set("ns/1", "it is written again")
	checkSound(t, r.dir, nil)
}

// At the bound, with a foreign reader: nothing is written beyond the log's limit, which is
// said, and states that wait are folded beyond their bound. When the reader is gone, the
// last state of each object is written, and a gap has the range that was folded.
func TestHistoryBytesWithAReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const bound, limit, objects = 2 << 20, 1 << 20, 40
		dir := directory(t)
		db := open(t, dir, Options{History: History{Bytes: bound}, LogLimit: limit})
		s, err := NewSink(db, Collection{Name: "objects", Identity: "test"}, logged{})
		must(t, err)
		f := follow(t, s.store)
		random := rand.New(rand.NewPCG(1, 1))
		version, last := 0, map[tarn.Key]string{}
		next := func(batches int) {
			for range batches {
				var changes []tarn.Change[logtest.Object]
				for range 50 {
					version++
					text := make([]byte, 300)
					for j := range text {
						text[j] = byte('a' + random.IntN(26))
					}
					key, v := tarn.Key(fmt.Sprint("ns/", random.IntN(objects))), tarn.Version(fmt.Sprint(version))
					last[key] = string(text)
					changes = append(changes, tarn.Change[logtest.Object]{Type: tarn.Update, Key: key, Version: v, Object: logtest.Object{Key: key, Version: v, UID: "u", Text: string(text)}})
				}
				must(t, f.Apply(changes, tarn.At(tarn.Version(fmt.Sprint(version)))))
				time.Sleep(2 * time.Second)
				synctest.Wait()
			}
		}
		next(100)
		must(t, db.log.empty(db.writer))
		leave := lingering(t, db)
		next(waitingStates/50 + 50)
		// The batch that could not be written is tried again unchanged.
		h, written := f.Disk(), 0
		_, err = fmt.Sscan(string(s.Disk().Version), &written)
		must(t, err)
		if !errors.Is(h.Err, ErrLogFull) || h.Pending == 0 || h.Pending > objects+50 || h.Lag < time.Minute {
			t.Errorf("with a reader Health says %v", h)
		}
		if file, log := fileSize(db.path()), fileSize(db.path()+"-wal"); file > bound*105/100 || log > 2*limit {
			t.Errorf("the file has %d bytes, the log %d", file, log)
		}
		during := time.Now()
		leave()
		time.Sleep(time.Minute)
		synctest.Wait()
		folded := version
		next(20)
		if h := f.Disk(); h.Err != nil || h.Pending != 0 || s.Disk().Version != tarn.Version(fmt.Sprint(version)) {
			t.Errorf("when the reader is gone Health says %v, and the disk has version %s of %d", h, s.Disk().Version, version)
		}
		var gaps []changelog.Gap
		for e, err := range s.Log().After(t.Context(), bounded(t, s).First) {
			must(t, err)
			if e.Gap != nil {
				gaps = append(gaps, *e.Gap)
			}
		}
		if len(gaps) != 1 || gaps[0].Cause != tarn.GapFolded || gaps[0].From != tarn.Version(fmt.Sprint(written+50)) || gaps[0].To != tarn.Version(fmt.Sprint(folded)) {
			t.Errorf("the gaps are %v; from %d to %d states were folded", gaps, written+50, folded)
		}
		if place, err := s.Log().AtTime(t.Context(), during.Add(-time.Minute)); err != nil || len(place.Gaps) != 1 {
			t.Errorf("while the reader was there: %v, %v", place, err)
		}
		for e, err := range s.Log().AsOf(t.Context(), changelog.Place{Seq: bounded(t, s).Last}) {
			must(t, err)
			o, err := logged{}.Decode(e.Object)
			must(t, err)
			if o.Text != last[e.Key] {
				t.Errorf("%s is not its last state", e.Key)
			}
			delete(last, e.Key)
		}
		if len(last) > 0 {
			t.Errorf("the log lacks %d objects", len(last))
		}
		time.Sleep(2 * emptyAfter)
		synctest.Wait()
		if file := fileSize(db.path()); file > bound*105/100 {
			t.Errorf("the file has %d bytes after the reader has gone", file)
		}
		f.Close()
		must(t, db.Close())
		checkSound(t, dir, nil)
	})
}

func bounded(t *testing.T, s *Sink[logtest.Object]) changelog.Bounds {
	t.Helper()
	bounds, err := s.Log().Bounds(t.Context())
	must(t, err)
	return bounds
}

const historyCrashEnvironment = "TARN_TEST_HISTORY_CRASH"

// Pruning also removes the whole states that the pruned states were stored against, and no
// others.
func TestPruningRemovesBases(t *testing.T) {
	r := newPastRig(t, History{Age: time.Minute})
	random := rand.New(rand.NewPCG(1, 2))
	texts := make([][]byte, 5)
	for i := range texts {
		texts[i] = make([]byte, 600)
		for j := range texts[i] {
			texts[i][j] = byte('a' + random.IntN(26))
		}
	}
	most := int64(0)
	for range 1500 {
		i := random.IntN(len(texts))
		at := random.IntN(len(texts[i]) - 20)
		for j := range 20 {
			texts[i][at+j] = byte('a' + random.IntN(26))
		}
		r.set(tarn.Key(fmt.Sprint("ns/", i)), string(texts[i]))
		unused, err := number(r.db.writer, "SELECT count(*) FROM tarn_bases_1 WHERE id NOT IN (SELECT base FROM tarn_states_1)")
		must(t, err)
		if unused > 0 {
			t.Fatalf("at version %d, %d whole states are left that nothing is stored against", r.version, unused)
		}
		bases, err := number(r.db.writer, "SELECT count(*) FROM tarn_bases_1")
		must(t, err)
		most = max(most, bases)
	}
	if most < 2*int64(len(texts)) {
		t.Fatalf("there were never more than %d whole states", most)
	}
	checkSound(t, r.dir, nil)
}
