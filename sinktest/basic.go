package sinktest

import (
	"fmt"
	"slices"
	"time"

	"github.com/tarnproject/tarn"
)

// noon is the time of the last contact with the source in the checks.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// to is a batch that leads to a version by some changes.
func to(v tarn.Version, changes ...tarn.Change[Object]) tarn.Batch[Object] {
	return tarn.Batch[Object]{Changes: changes, Positions: []tarn.Position{tarn.At(v)}, LastContact: noon}
}

func whole(b tarn.Batch[Object]) tarn.Batch[Object] {
	b.Whole = true
	return b
}

func change(kind tarn.ChangeType, key tarn.Key, v tarn.Version, text string) tarn.Change[Object] {
	return tarn.Change[Object]{Type: kind, Key: key, Version: v, Object: Object{Key: key, Version: v, UID: "uid of " + string(key), Text: text}}
}

func added(key tarn.Key, v tarn.Version) tarn.Change[Object] {
	return change(tarn.Add, key, v, "as added")
}

func updated(key tarn.Key, v tarn.Version) tarn.Change[Object] {
	return change(tarn.Update, key, v, "as updated")
}

// deleted is a delete as it comes to sinks that do not want every state: without the
// object.
func deleted(key tarn.Key, v tarn.Version) tarn.Change[Object] {
	return tarn.Change[Object]{Type: tarn.Delete, Key: key, Version: v}
}

// basic are the checks of what sinks do every day.
var basic = []check{
	{"a new sink holds nothing", func(r *rig) {
		for _, problem := range r.differs(state{}) {
			r.T.Errorf("%s", problem)
		}
	}},
	{"what was committed is there with its position", func(r *rig) {
		r.commits(
			whole(to("2", added("ns/a", "1"), added("ns/b", "2"), added("c", "2"))),
			to("3", updated("ns/a", "3")),
			to("4", deleted("ns/b", "4")))
	}},
	{"the changes of one key take effect in their order", func(r *rig) {
		r.commits(
			whole(to("1", added("a", "1"), added("b", "1"), added("c", "1"))),
			to("9", deleted("a", "2"), added("a", "3"), updated("a", "4"),
				updated("b", "5"), deleted("b", "6"),
				added("d", "7"), deleted("d", "8"),
				deleted("c", "8"), added("c", "9")))
	}},
	{"a whole batch removes everything else", func(r *rig) {
		r.commits(
			whole(to("2", added("kept", "1"), added("gone", "2"))),
			whole(to("5", added("kept", "1"), added("new", "4"), updated("new", "5"))),
			whole(to("6")),
			to("7", added("kept", "7")))
	}},
	{"a change may be of a key that is there, or is not", func(r *rig) {
		r.commits(
			whole(to("1", added("a", "1"))),
			to("4", added("a", "2"), updated("b", "3"), deleted("c", "4")))
	}},
	{"a batch without changes moves the position", func(r *rig) {
		r.commits(whole(to("1", added("a", "1"))), to("5"), to("9"))
	}},
	{"an empty collection has a position", func(r *rig) {
		r.commits(whole(to("1")), to("2"))
	}},
	{"a position is kept as it is", func(r *rig) {
		var batches []tarn.Batch[Object]
		for i, at := range []tarn.Position{
			{Version: "7", Complete: true}, {Version: "7"}, {Version: "7", Epoch: "2026-01-02T12:00:00.123456789Z", Complete: true},
			{Version: "3", Epoch: "later", Complete: true}, {Version: "007", Complete: true}, {Version: "opaque-β", Complete: true},
			{Version: "123456789012345678901234567890", Complete: true},
		} {
			b := to("")
			b.Whole, b.Positions = i == 0, []tarn.Position{at}
			batches = append(batches, b)
		}
		r.commits(batches...)
	}},
	{"each section has its position", func(r *rig) {
		one, two := tarn.Position{Section: "one", Version: "1", Complete: true}, tarn.Position{Section: "two", Epoch: "e", Version: "2"}
		in := func(b tarn.Batch[Object], positions ...tarn.Position) tarn.Batch[Object] {
			b.Positions = positions
			return b
		}
		later := one
		later.Version = "4"
		r.commits(
			in(whole(to("", added("one/a", "1"))), one),
			in(to("", added("two/a", "2")), one, two),
			in(to("", updated("one/a", "4")), later, two),
			in(to(""), two, later), // in any order
			in(to("", deleted("two/a", "")), later),
			in(to("", deleted("one/a", ""))))
	}},
	{"when the source was heard is kept", func(r *rig) {
		later := to("2")
		later.LastContact = noon.Add(time.Hour)
		r.commits(whole(to("1", added("a", "1"))), later)
	}},
	{"keys and texts are kept apart, whatever is in them", func(r *rig) {
		var changes []tarn.Change[Object]
		for _, key := range []tarn.Key{"a", "A", "a/b", "a/b/c", "a ", "ä", "a%", "a_", "a'b", `a"b`, "a.b", "a*", "a>"} {
			changes = append(changes, change(tarn.Add, key, "1", "a\nb\x00c "+string(key)))
		}
		r.commits(whole(to("1", changes...)), to("2", deleted("a", "2"), deleted("a%", "2")))
	}},
	{"a batch may be large", func(r *rig) {
		var all, rest []tarn.Change[Object]
		for i := range 3000 {
			key := tarn.Key(fmt.Sprintf("ns/%05d", i))
			all = append(all, added(key, "1"))
			if i%2 == 0 {
				rest = append(rest, deleted(key, "2"))
			} else {
				rest = append(rest, updated(key, "2"))
			}
		}
		r.commits(whole(to("1", all...)), to("2", rest...))
	}},
	{"gaps are kept", func(r *rig) {
		if r.subject.Gaps == nil {
			return
		}
		gaps := []tarn.Gap{{From: "1", To: "3", Cause: tarn.GapRead}, {Section: "one", From: "3", To: "4", Cause: tarn.GapFolded}, {From: "4", To: "2", Cause: tarn.GapRewound}}
		first, second := to("3", updated("a", "3")), to("4")
		first.Gaps, second.Gaps = gaps[:1], gaps[1:]
		r.commits(whole(to("1", added("a", "1"))), first, second)
		if have, err := r.subject.Gaps(); err != nil || !slices.Equal(have, gaps) {
			r.T.Errorf("the gaps are %v, want %v (%v)", have, gaps, err)
		}
	}},
}
