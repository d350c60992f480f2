package tarn_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarnproject/tarn"
)

// diskStore is a store with content from a process before.
type diskStore struct {
	tarn.ReadStore[*thing]
	kept           string
	other, unsound bool
	err            error
	// positions are those of sections, if it has several.
	positions []tarn.Position
	// at is what the store was told with each version that it was given.
	at, epochs []string
}

func (d *diskStore) Apply(changes []tarn.Change[*thing], at tarn.Position) error {
	d.note(at)
	return d.ReadStore.Apply(changes, at)
}

func (d *diskStore) note(at tarn.Position) {
	d.at = append(d.at, fmt.Sprint(at.Version, " ", at.Complete))
	d.epochs = append(d.epochs, strings.TrimSpace(fmt.Sprint(at.Version, " ", at.Epoch)))
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
	at := tarn.Position{Version: tarn.Version(version), Complete: !d.unsound}
	positions := []tarn.Position{at}
	if d.positions != nil {
		positions = d.positions
	}
	kept := tarn.Kept{Positions: positions, LastContact: time.Now().Add(-42 * time.Second)}
	if d.other {
		kept.Confirm = func(context.Context) error { return tarn.ErrOtherSource }
	}
	for _, p := range positions {
		if err := d.ReadStore.Apply(changes, p); err != nil {
			return kept, err
		}
		changes = nil
	}
	return kept, nil
}

func (d *diskStore) Disk() tarn.SinkHealth { return tarn.SinkHealth{Version: d.Version()} }

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

func (d *fillStore) Filled(at tarn.Position) error {
	var all []tarn.Change[*thing]
	for _, key := range slices.Sorted(maps.Keys(d.filled)) {
		all = append(all, d.filled[key])
	}
	d.filled = nil
	if err := d.Apply(all, at); err != nil {
		return err
	}
	if _, ok := d.Get("late"); ok {
		return tarn.ObjectErrors{{Key: "late", Err: errors.New("cannot be written")}}
	}
	return nil
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
	"disk: what could not be written at the end of a first state is bad": {
		disk: "none", fill: true,
		server: `
			list latest -> 5: a@3 late@4
			watch 5 -> hang`,
		handler: "add a@3 initial\nadd late@4 initial",
		bad:     "late",
		then:    synced("5", map[string]int64{"start": 1}),
	},
	"disk: content that lacks something is served, and read as a difference": {
		disk: "5: a@3 b@5", unsound: true,
		server: `
			list 5 -> 9: a@3 b@8
			watch 9 -> hang`,
		handler: "add a@3 initial\nadd b@5 initial\nupdate b@5 -> b@8",
		then:    synced("9", map[string]int64{"restart": 1}),
	},
	"disk: a source whose watches are silent and never end is listed in the end": {
		disk: "5: a@3",
		server: `
			list latest limit=1 -> 900: a@3
			watch 5 for 3s -> hang
			list latest limit=1 -> 900: a@3
			list 5 -> 900: a@3
			watch 900 -> hang`,
		handler: "add a@3 initial",
		atMost:  10 * time.Minute,
		then:    synced("900", map[string]int64{"restart": 1}),
	},
	"disk: a source whose watches break before they tell anything is listed in the end": {
		disk: "5: a@3",
		server: `
			list latest limit=1 -> 900: a@3
			watch 5 for 3s -> wait 500ms; error lost
			watch 5 for 6s -> wait 500ms; error lost
			watch 5 for 12s -> wait 500ms; error lost
			list 5 -> 900: a@3
			watch 900 -> hang`,
		handler: "add a@3 initial",
		errors:  "connection lost\nconnection lost\nconnection lost",
		then:    synced("900", map[string]int64{"restart": 1}),
	},
	"disk: who may watch and not list is given the state as a stream": {
		disk: "5: a@3 b@4", opts: tarn.Options[*thing]{WatchList: true},
		server: `
			list latest limit=1 -> error forbidden
			stream 5 -> add a@7; end 9; hang`,
		handler: "add a@3 initial\nadd b@4 initial\ndelete b@4 missed\nupdate a@3 -> a@7",
		then:    synced("9", map[string]int64{"restart": 1}),
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
