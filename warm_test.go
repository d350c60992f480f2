package tarn_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/memory"
)

// diskStore is a store with content from a process before.
type diskStore struct {
	tarn.ReadStore[*thing]
	kept  string
	other bool
	err   error
}

func (d *diskStore) Restore(context.Context) (tarn.Kept, error) {
	if d.err != nil || d.kept == "none" {
		return tarn.Kept{}, d.err
	}
	version, items, _ := strings.Cut(d.kept, ":")
	var changes []tarn.Change[*thing]
	for _, item := range strings.Fields(items) {
		o := parseThing(item)
		changes = append(changes, tarn.Change[*thing]{Type: tarn.Add, Key: tarn.Key(o.name), Object: o})
	}
	kept := tarn.Kept{Version: tarn.Version(version), Heard: time.Now().Add(-42 * time.Second)}
	if d.other {
		kept.Confirm = func(context.Context) error { return tarn.ErrOtherSource }
	}
	return kept, d.Apply(changes, kept.Version)
}

func (d *diskStore) Disk() tarn.DiskHealth { return tarn.DiskHealth{Version: d.Version()} }

// fillStore is a disk that takes its first state in pieces. It refuses one that has
// "refused" in it.
type fillStore struct {
	*diskStore
	filled map[tarn.Key]tarn.Change[*thing]
}

func (d *fillStore) Fill(changes []tarn.Change[*thing], first bool) error {
	if first {
		d.filled = map[tarn.Key]tarn.Change[*thing]{}
	}
	var bad tarn.ObjectErrors
	for _, c := range changes {
		switch {
		case c.Type == tarn.Delete:
			delete(d.filled, c.Key)
		case c.Key == "refused":
			return errors.New("the disk is full")
		case c.Key == "unwritable":
			bad = append(bad, tarn.BadObject{Key: c.Key, Err: errors.New("cannot be written")})
		default:
			d.filled[c.Key] = c
		}
	}
	if bad != nil {
		return bad
	}
	return nil
}

func (d *fillStore) Filled(v tarn.Version) error {
	var all []tarn.Change[*thing]
	for _, key := range slices.Sorted(maps.Keys(d.filled)) {
		all = append(all, d.filled[key])
	}
	d.filled = nil
	return d.ReadStore.Apply(all, v)
}

// warmStories are what happens when a replica begins with what another process
// left on disk.
var warmStories = map[string]story{
	"disk: the watch is resumed after a probe, without a list": {
		disk: "5: a@3 b@5",
		server: `
			list latest limit=1 -> 9: a@3
			watch 5 for 3s -> mod a@7; del b@8; bookmark 9; hang`,
		handler: "add a@3 initial\nadd b@5 initial\nupdate a@3 -> a@7\ndelete b@8",
		store:   "a@7",
		then:    synced("9", map[string]int64{}),
	},
	"disk: nothing happened meanwhile": {
		disk: "5: a@3 b@5",
		server: `
			list latest limit=1 -> 5: a@3
			watch 5 -> hang`,
		handler: "add a@3 initial\nadd b@5 initial",
		store:   "a@3 b@5",
		then:    synced("5", map[string]int64{}),
	},
	"disk: not synced before the version of the probe is reached": {
		disk: "5: a@3",
		server: `
			list latest limit=1 -> 9: a@3
			watch 5 for 3s -> mod a@7; hang`,
		handler: "add a@3 initial\nupdate a@3 -> a@7",
		then: func(t *testing.T, r *tarn.Replica[*thing]) {
			if h := r.Health(); h.Synced || !h.FromDisk {
				t.Errorf("synced, at version %s, although the source was at 9: %v", h.Version, h)
			}
		},
	},
	"disk: a quiet collection is told so by the end of a short watch": {
		disk: "5: a@3",
		server: `
			list latest limit=1 -> 900: a@3
			watch 5 for 3s -> wait 1s; bookmark 901; wait 2s; close
			watch 901 -> hang`,
		handler: "add a@3 initial",
		atMost:  4 * time.Second,
		then:    synced("901", map[string]int64{}),
	},
	"disk: short watches that tell nothing become longer": {
		disk: "5: a@3",
		server: `
			list latest limit=1 -> 900: a@3
			watch 5 for 3s -> wait timeout; close
			watch 5 for 6s -> bookmark 890; wait timeout; close
			watch 890 for 12s -> wait 10s; bookmark 900; hang`,
		handler: "add a@3 initial",
		then:    synced("900", map[string]int64{}),
	},
	"disk: a source without bookmarks is listed in the end": {
		disk: "5: a@3",
		server: `
			list latest limit=1 -> 900: a@3
			watch 5 for 3s -> wait timeout; close
			watch 5 for 6s -> wait timeout; close
			watch 5 for 12s -> wait timeout; close
			list 5 -> 900: a@3
			watch 900 -> hang`,
		handler: "add a@3 initial",
		atMost:  25 * time.Second,
		then:    synced("900", map[string]int64{"restart": 1}),
	},
	"disk: a version that is gone costs a list, as a difference": {
		disk: "5: a@3 b@5 c@4",
		server: `
			list latest limit=1 -> 90: a@3
			watch 5 for 3s -> error expired
			list latest -> 91: a@3 b@80
			watch 91 -> hang`,
		handler: "add a@3 initial\nadd b@5 initial\nadd c@4 initial\ndelete c@4 missed\nupdate b@5 -> b@80",
		errors:  "expired",
		store:   "a@3 b@80",
		then:    synced("91", map[string]int64{"expired": 1}),
	},
	"disk: a version that expires inside of the watch": {
		disk: "5: a@3",
		server: `
			list latest limit=1 -> 90: a@3
			watch 5 for 3s -> mod a@6; error expired
			list latest -> 91: a@90
			watch 91 -> hang`,
		handler: "add a@3 initial\nupdate a@3 -> a@6\nupdate a@6 -> a@90",
		errors:  "expired",
		then:    synced("91", map[string]int64{"expired": 1}),
	},
	"disk: a source that went back is read anew, comparing content": {
		disk: "50: a@3=old b@5",
		server: `
			list latest limit=1 -> 30: a@3
			list latest -> 30: a@3=new b@5
			watch 30 -> hang`,
		handler: "add a@3=old initial\nadd b@5 initial\nupdate a@3=old -> a@3=new",
		errors:  "the source went back in time",
		then:    synced("30", map[string]int64{"rewound": 1}),
	},
	"disk: content of another source is read anew, comparing content": {
		disk: "50: a@3=theirs b@5", other: true,
		server: `
			list latest -> 70: a@3=ours
			watch 70 -> hang`,
		handler: "add a@3=theirs initial\nadd b@5 initial\ndelete b@5 missed\nupdate a@3=theirs -> a@3=ours",
		errors:  tarn.ErrOtherSource.Error(),
		then:    synced("70", map[string]int64{"other source": 1}),
	},
	"disk: a probe without an answer is made again, and disk served meanwhile": {
		disk: "5: a@3",
		server: `
			list latest limit=1 -> error refused
			list latest limit=1 -> error forbidden
			list latest limit=1 -> 6: a@3
			watch 5 for 3s -> add b@6; hang`,
		handler: "add a@3 initial\nadd b@6",
		errors:  "refused\nforbidden",
		then:    synced("6", map[string]int64{}),
	},
	"disk: a watch that is lost before the end is resumed": {
		disk: "5: a@3",
		server: `
			list latest limit=1 -> 9: a@3
			watch 5 for 3s -> mod a@6; error lost
			watch 6 for 3s -> mod a@9; hang`,
		handler: "add a@3 initial\nupdate a@3 -> a@6\nupdate a@6 -> a@9",
		errors:  "connection lost",
		then:    synced("9", map[string]int64{}),
	},
	"disk: a watch that cannot be had is followed by a list at the version reached": {
		disk: "5: a@3",
		server: `
			list latest limit=1 -> 9: a@3
			watch 5 for 3s -> error internal
			list 5 -> 9: a@3 b@9
			watch 9 -> hang`,
		handler: "add a@3 initial\nadd b@9 initial",
		errors:  "internal error",
		then:    synced("9", map[string]int64{"watch ended": 1}),
	},
	"disk: versions that cannot be compared are listed": {
		disk: "x5: a@3",
		server: `
			list latest limit=1 -> x9: a@3
			list x5 -> x9: a@3 b@x9
			watch x9 -> hang`,
		handler: "add a@3 initial\nadd b@x9 initial",
		then:    synced("x9", map[string]int64{"restart": 1}),
	},
	"disk: as a stream, if a state must be read": {
		disk: "50: a@3", opts: tarn.Options[*thing]{WatchList: true},
		server: `
			list latest limit=1 -> 30: a@3
			stream latest -> add a@3; end 30; hang`,
		handler: "add a@3 initial",
		errors:  "the source went back in time",
		then:    synced("30", map[string]int64{"rewound": 1}),
	},
	"disk: with nothing on it, the replica begins as any other": {
		disk: "none",
		server: `
			list any -> 5: a@3
			watch 5 -> hang`,
		handler: "add a@3 initial",
		then:    synced("5", map[string]int64{"start": 1}),
	},
	"disk: a first state flows through, in pages of a consistent read": {
		disk: "none", fill: true,
		server: `
			list latest limit=500 -> 5: a@3 b@4 more=t1
			list latest continue=t1 -> 5: c@5
			watch 5 -> mod a@6; hang`,
		handler: "add a@3 initial\nadd b@4 initial\nadd c@5 initial\nupdate a@3 -> a@6",
		store:   "a@6 b@4 c@5",
		then:    synced("6", map[string]int64{"start": 1}),
	},
	"disk: a first state that flows and breaks off is begun anew": {
		disk: "none", fill: true,
		server: `
			list latest limit=500 -> 5: a@3 gone@4 more=t1
			list latest continue=t1 -> error expired
			list latest -> 8: a@7
			watch 8 -> hang`,
		handler: "add a@7 initial",
		store:   "a@7",
		then:    synced("8", map[string]int64{"start": 1}),
	},
	"disk: a first state that the disk does not take is tried again": {
		disk: "none", fill: true,
		server: `
			list latest -> 5: a@3 refused@4
			list latest -> 6: a@3
			watch 6 -> hang`,
		handler: "add a@3 initial",
		errors:  "the disk is full",
		store:   "a@3",
		then:    synced("6", map[string]int64{"start": 1}),
	},
	"disk: a first state that flows as a stream": {
		disk: "none", fill: true, opts: tarn.Options[*thing]{WatchList: true},
		server: `
			stream latest -> add a@3; add b@4; mod a@5; del b@6; add nil; add unwritable@7; end 9; hang`,
		handler: "add a@5 initial",
		bad:     "?\nunwritable",
		store:   "a@5",
		then: func(t *testing.T, r *tarn.Replica[*thing]) {
			synced("9", map[string]int64{"start": 1})(t, r)
			if h := r.Health(); h.BadCount != 2 {
				t.Errorf("%d bad objects: %v", h.BadCount, h.Bad)
			}
		},
	},
	"disk: a recheck asked for before is made": {
		disk:      "5: a@3=wrong",
		meanwhile: func(r *tarn.Replica[*thing]) { r.Recheck("verify") },
		server: `
			list latest -> 5: a@3=right
			watch 5 -> hang`,
		handler: "add a@3=wrong initial\nupdate a@3=wrong -> a@3=right",
		then:    synced("5", map[string]int64{"verify": 1}),
	},
}

// synced checks that the copy has caught up, with these lists.
func synced(v tarn.Version, lists map[string]int64) func(t *testing.T, r *tarn.Replica[*thing]) {
	return func(t *testing.T, r *tarn.Replica[*thing]) {
		t.Helper()
		if err := r.WaitSynced(t.Context()); err != nil {
			t.Fatal(err)
		}
		h := r.Health()
		if !h.Synced || h.FromDisk || h.Version != v || r.Version() != v {
			t.Errorf("not at version %s: %v (the store at %s)", v, h, r.Version())
		}
		for cause, n := range lists {
			if h.Lists[cause] != n {
				t.Errorf("%d lists because of %q, want %d", h.Lists[cause], cause, n)
			}
		}
		if len(h.Lists) != len(lists) {
			t.Errorf("lists by cause: %v, want %v", h.Lists, lists)
		}
	}
}

func TestWarmRestart(t *testing.T) {
	for name, s := range warmStories {
		t.Run(name, s.run)
	}
}

// What comes from disk is served at once, and says so, while the source is away.
func TestServingFromDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newScripted(t, "list latest limit=1 -> hang")
		store := &diskStore{ReadStore: memory.New[*thing](), kept: "5: a@3 b@5"}
		r, err := tarn.NewReplica(source, store, tarn.Options[*thing]{Name: "things", OnError: func(context.Context, error) {}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		synctest.Wait()
		if r.Len() != 2 || r.Version() != "5" {
			t.Errorf("%d objects at version %q are served", r.Len(), r.Version())
		}
		if err := r.WaitFor(t.Context(), "5"); err != nil {
			t.Errorf("the version on disk cannot be waited for: %v", err)
		}
		h := r.Health()
		if !h.FromDisk || h.Synced || h.Age != 42*time.Second || h.Fresh(time.Hour) || h.Disk == nil {
			t.Errorf("Health is %+v", h)
		}
		if s := h.String(); !strings.Contains(s, "from disk, 42s old, at version 5") {
			t.Errorf("Health says %q", s)
		}
		short, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if err := r.WaitSynced(short); err == nil || !strings.Contains(err.Error(), "from disk") {
			t.Errorf("WaitSynced says %v", err)
		}
		// One who comes late begins with what is there too.
		var late []string
		for c := range r.Changes(short) {
			late = append(late, describeChange(c))
		}
		if len(late) != 0 {
			t.Errorf("after the end there was %v", late)
		}
		more, stopMore := context.WithTimeout(t.Context(), time.Second)
		defer stopMore()
		for c := range r.Changes(more) {
			late = append(late, describeChange(c))
		}
		if slices.Sort(late); strings.Join(late, ", ") != "add a@3 initial, add b@5 initial" {
			t.Errorf("a late subscriber sees %v", late)
		}
		cancel()
		<-done
	})
}

// A disk that cannot be read costs a list, and is reported.
func TestADiskThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newScripted(t, "list any -> 5: a@3\nwatch 5 -> hang")
		store := &diskStore{ReadStore: memory.New[*thing](), err: errors.New("no disk")}
		var told []error
		r, err := tarn.NewReplica(source, store, tarn.Options[*thing]{Name: "things", OnError: func(_ context.Context, err error) { told = append(told, err) }})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		if err := r.WaitSynced(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(told) != 1 || !strings.Contains(told[0].Error(), "no disk; the copy begins with a list") {
			t.Errorf("reported: %v", told)
		}
		cancel()
		<-done
	})
}

// A plain reflector resumes too.
func TestWarmReflector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newScripted(t, "list latest limit=1 -> 7: a@3\nwatch 5 for 3s -> mod a@7; hang")
		store := &diskStore{ReadStore: memory.New[*thing](), kept: "5: a@3"}
		r, err := tarn.NewReflector(source, store, tarn.Options[*thing]{Name: "things"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		synctest.Wait()
		if h := r.Health(); !h.Synced || h.Version != "7" || len(h.Lists) != 0 {
			t.Errorf("Health is %+v", h)
		}
		cancel()
		<-done
	})
}

// Several sections begin with what is there, and are read as differences.
func TestWarmSections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		section := func(name, server string) tarn.Section[*thing] {
			return tarn.Section[*thing]{Name: name, Source: newScripted(t, server), Owns: func(k tarn.Key) bool { return strings.HasPrefix(string(k), name) }}
		}
		store := &diskStore{ReadStore: memory.New[*thing](), kept: "5: a1@3 b1@5"}
		r, err := tarn.NewReplicaOf([]tarn.Section[*thing]{
			section("a", "list 5 -> 9: a1@3\nwatch 9 -> hang"), section("b", "list 5 -> 8: b1@8\nwatch 8 -> hang"),
		}, store, tarn.Options[*thing]{Name: "things"})
		if err != nil {
			t.Fatal(err)
		}
		var told []string
		if _, err := r.Subscribe(func(c tarn.Change[*thing]) { told = append(told, describeChange(c)) }, tarn.SubscribeOptions{}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		if err := r.WaitSynced(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		slices.Sort(told)
		if got := strings.Join(told, ", "); got != "add a1@3 initial, add b1@5 initial, update b1@5 -> b1@8" {
			t.Errorf("the handler saw %s", got)
		}
		if h := r.Health(); h.FromDisk || h.Version != "8" {
			t.Errorf("Health is %v", h)
		}
		cancel()
		<-done
	})
}
