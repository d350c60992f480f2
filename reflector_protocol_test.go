package tarn_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarnproject/tarn"
)

// The stories below are the cells of docs/protocol.md. A test there checks that
// each cell names a story that exists, and that each story is named.
var stories = map[string]story{
	"list: the first takes what is at hand, then the watch goes on from there": {
		server: `
			list any limit=500 -> 5: a@3 b@5
			watch 5 -> mod a@6; add c@7; del b@8; hang`,
		handler: `
			add a@3 initial
			add b@5 initial
			update a@3 -> a@6
			add c@7
			delete b@8`,
		store: "a@6 c@7",
	},
	"list: pages are read to the end": {
		server: `
			list any limit=500 -> 5: a@1 more=t1
			list any continue=t1 limit=500 -> 5: b@2 more=t2
			list any continue=t2 -> 5: c@3
			watch 5 -> hang`,
		handler: "add a@1 initial\nadd b@2 initial\nadd c@3 initial",
	},
	"list: the caller's page size is kept for every list": {
		server: `
			list any limit=2 -> 5: a@1
			watch 5 -> error boom
			list 5 limit=2 -> 5: a@1
			watch 5 -> hang`,
		opts:    tarn.Options[*thing]{PageSize: func() int64 { return 2 }},
		handler: "add a@1 initial\nsync a@1",
		errors:  "boom",
	},
	"list: not paged for a version, unless the source paged its cheapest read": {
		server: `
			list any limit=500 -> 5: a@1
			watch 5 -> wait 1m; bookmark 6; error boom
			list 6 limit=0 -> 6: a@1
			watch 6 -> hang`,
		handler: "add a@1 initial\nsync a@1",
		errors:  "boom",
	},
	"list: once the cheapest read was paged, keep paging": {
		server: `
			list any limit=500 -> 5: a@1 more=t
			list any continue=t -> 5: b@2
			watch 5 -> error boom
			list 5 limit=500 -> 5: a@1 b@2
			watch 5 -> hang`,
		handler: "add a@1 initial\nadd b@2 initial\nsync a@1\nsync b@2",
		errors:  "boom",
	},
	"list: a page token that expires costs a full list": {
		server: `
			list any -> 5: a@1 x@1 more=t
			list any continue=t -> error expired
			list any limit=0 -> 6: a@1 b@6
			watch 6 -> hang`,
		handler: "add a@1 initial\nadd b@6 initial",
	},
	"list: an expired version is read consistently": {
		server: `
			list any -> 5: a@1
			watch 5 -> error boom
			list 5 -> error expired
			list latest limit=500 -> 9: a@1 b@9
			watch 9 -> hang`,
		handler: "add a@1 initial\nadd b@9\nsync a@1",
		errors:  "boom",
	},
	"list: a version too new is read consistently": {
		server: `
			list any -> 5: a@1
			watch 5 -> error boom
			list 5 -> error toonew
			list latest -> 9: a@1
			watch 9 -> hang`,
		handler: "add a@1 initial\nsync a@1",
		errors:  "boom",
	},
	"list: a failure is reported and tried again after a wait": {
		server: `
			list any -> error forbidden
			list any -> error forbidden
			list any -> 5: a@1
			watch 5 -> hang`,
		handler: "add a@1 initial",
		errors:  "forbidden\nforbidden",
		atLeast: 2400 * time.Millisecond, atMost: 4800 * time.Millisecond,
	},
	"list: Retry-After is honoured": {
		server: `
			list any -> error busy after=45s
			list any -> 5: a@1
			watch 5 -> hang`,
		handler: "add a@1 initial",
		errors:  "busy",
		atLeast: 45 * time.Second, atMost: 46 * time.Second,
	},
	"list: an answer that is none keeps the content": {
		server: `
			list any -> 5: a@1
			watch 5 -> error boom
			list 5 -> : 
			list 5 -> 5: a@1
			watch 5 -> hang`,
		handler: "add a@1 initial\nsync a@1",
		errors:  "boom\nthe answer is not a list",
		store:   "a@1",
	},
	"list: a page without a version after one that had one is no list": {
		server: `
			list any -> 5: a@1 more=t
			list any continue=t -> : b@2
			list any -> 5: a@1 b@2
			watch 5 -> hang`,
		handler: "add a@1 initial\nadd b@2 initial",
		errors:  "the answer is not a list",
	},
	"list: no answer at all is given up": {
		server: `
			list any -> hang
			list any -> 5: a@1
			watch 5 -> hang`,
		handler: "add a@1 initial",
		errors:  "no answer",
		atLeast: 5 * time.Minute, atMost: 5*time.Minute + 2*time.Second,
	},
	"list: an empty first answer without a version is asked for again": {
		server: `
			list any -> : 
			list latest -> 5: a@1
			watch 5 -> hang`,
		handler: "add a@1 initial",
	},
	"list: an empty first answer without a version, said twice, is believed": {
		server: `
			list any -> : 
			list latest -> : 
			watch latest -> add a@; hang`,
		handler: "add a@",
	},
	"list: a source without versions is followed all the same": {
		server: `
			list any -> : a@ b@
			watch latest -> add c@; mod a@=x; del b@; hang`,
		handler: "add a@ initial\nadd b@ initial\nadd c@\nupdate a@ -> a@=x\ndelete b@",
	},
	"relist: the difference is applied": {
		server: `
			list any -> 5: a@1 b@2 c@3
			watch 5 -> error boom
			list 5 -> 9: a@1 b@7 d@9
			watch 9 -> hang`,
		handler: `
			add a@1 initial
			add b@2 initial
			add c@3 initial
			delete c@3 missed
			update b@2 -> b@7
			add d@9
			sync a@1`,
		errors: "boom",
		store:  "a@1 b@7 d@9",
	},
	"relist: another uid under the same key is an update": {
		server: `
			list any -> 5: a@1/u1
			watch 5 -> error boom
			list 5 -> 9: a@8/u2
			watch 9 -> hang`,
		handler: "add a@1/u1 initial\nupdate a@1/u1 -> a@8/u2",
		errors:  "boom",
	},
	"relist: without versions content is compared": {
		server: `
			list any -> : a@=x b@=y
			watch latest -> error boom
			list any -> : a@=x b@=z
			watch latest -> hang`,
		handler: "add a@=x initial\nadd b@=y initial\nupdate b@=y -> b@=z\nsync a@=x",
		errors:  "boom",
	},
	"bad: an item is skipped, its last good state stays, a good one redeems it": {
		server: `
			list any -> 5: a@1 b@2
			watch 5 -> error boom
			list 5 -> 9: a@1 bad=b
			watch 9 -> mod b@10; hang`,
		handler: "add a@1 initial\nadd b@2 initial\nsync a@1\nsync b@2\nupdate b@2 -> b@10",
		errors:  "boom",
		bad:     "b",
		store:   "a@1 b@10",
		then: func(t *testing.T, r *tarn.Replica[*thing]) {
			if h := r.Health(); h.BadCount != 0 {
				t.Errorf("still bad: %v", h.Bad)
			}
		},
	},
	"bad: an item without a key keeps everything that is missing": {
		server: `
			list any -> 5: a@1 b@2
			watch 5 -> error boom
			list 5 -> 9: a@1 nil
			watch 9 -> bookmark 10; hang`,
		handler: "add a@1 initial\nadd b@2 initial\nsync a@1",
		errors:  "boom",
		bad:     "?",
		store:   "a@1 b@2",
		then: func(t *testing.T, r *tarn.Replica[*thing]) {
			if h := r.Health(); len(h.Bad) != 1 || h.Bad[0].Key != "b" {
				t.Errorf("b should be marked: %v", h.Bad)
			}
		},
	},
	"bad: a clean list settles what is missing, ten minutes later": {
		server: `
			list any -> 5: a@1 b@2
			watch 5 -> error boom
			list 5 -> 9: a@1 nil
			watch 9 -> hang
			list latest -> 9: a@1
			watch 9 -> hang`,
		opts:    tarn.Options[*thing]{SilenceLimit: -1},
		handler: "add a@1 initial\nadd b@2 initial\nsync a@1\ndelete b@2 missed\nsync a@1",
		errors:  "boom",
		bad:     "?",
		atLeast: 10 * time.Minute,
		then: func(t *testing.T, r *tarn.Replica[*thing]) {
			if h := r.Health(); len(h.Bad) != 0 || h.Lists["unreadable"] != 1 {
				t.Errorf("health: %+v", h)
			}
		},
	},
	"bad: an event is skipped, the version goes on": {
		server: `
			list any -> 5: a@1
			watch 5 -> mod a@6=poison; mod nil; foreign a; add @8; add b@9; wait 30s; close
			watch 9 -> bookmark 10; hang`,
		opts: tarn.Options[*thing]{SilenceLimit: -1, Transform: func(o *thing) (*thing, error) {
			if o.text == "poison" {
				return nil, errors.New("poisoned")
			}
			return o, nil
		}},
		handler: "add a@1 initial\nadd b@9",
		bad:     "a\n?\na\n?",
		store:   "a@1 b@9",
		then: func(t *testing.T, r *tarn.Replica[*thing]) {
			h := r.Health()
			if len(h.Bad) != 1 || h.Bad[0].Key != "a" || h.BadCount != 3 {
				t.Errorf("bad objects: %v, %d", h.Bad, h.BadCount)
			}
		},
	},
	"bad: a replayed good state does not redeem a later bad one": {
		server: `
			list any -> 5: a@1
			watch 5 -> mod a@6; foreign a@7; mod a@6; hang`,
		handler: "add a@1 initial\nupdate a@1 -> a@6",
		bad:     "a",
		then: func(t *testing.T, r *tarn.Replica[*thing]) {
			if h := r.Health(); len(h.Bad) != 1 || h.Bad[0].Version != "7" {
				t.Errorf("bad objects: %v", h.Bad)
			}
		},
	},
	"bad: what a rewind left behind is replaced by the next good state": {
		server: `
			list any -> 50: a@40
			watch 50 -> wait 1m; close
			watch 50 -> hang
			list latest limit=1 -> 30: a@20
			list latest -> 31: bad=a
			watch 31 -> mod a@32; hang`,
		handler: "add a@40 initial\nsync a@40\nupdate a@40 -> a@32",
		errors:  "the source went back in time",
		bad:     "a",
		store:   "a@32",
	},
	"bad: a panic of the transform is an error of that object": {
		server: `
			list any -> 5: a@1=poison b@2
			watch 5 -> mod a@6; hang`,
		opts: tarn.Options[*thing]{Transform: func(o *thing) (*thing, error) {
			if o.text == "poison" {
				panic("poisoned")
			}
			return o, nil
		}},
		handler: "add b@2 initial\nadd a@6",
		bad:     "a",
	},
	"bad: a delete whose state cannot be taken is still a delete": {
		server: `
			list any -> 5: a@1
			watch 5 -> del a@6=poison; hang`,
		opts: tarn.Options[*thing]{Transform: func(o *thing) (*thing, error) {
			if o.text == "poison" {
				return nil, errors.New("poisoned")
			}
			return o, nil
		}},
		handler: "add a@1 initial\ndelete a@1 missed",
		bad:     "a",
	},
	"bad: a replayed delete whose state cannot be taken is dropped": {
		server: `
			list any -> 5: a@1
			watch 5 -> del a@6=poison; add a@7; del a@6=poison; hang
			list latest limit=1 -> 7: a@7`,
		opts: tarn.Options[*thing]{Transform: func(o *thing) (*thing, error) {
			if o.text == "poison" {
				return nil, errors.New("poisoned")
			}
			return o, nil
		}},
		handler: "add a@1 initial\ndelete a@1 missed\nadd a@7",
		bad:     "a\na",
		store:   "a@7",
	},
	"watch: an ordinary end resumes where it stopped": {
		server: `
			list any -> 5: a@1
			watch 5 -> bookmark 9; wait timeout; close
			watch 9 -> hang`,
		opts:    tarn.Options[*thing]{SilenceLimit: -1},
		handler: "add a@1 initial",
	},
	"watch: one from no version cannot be resumed": {
		server: `
			list any -> : a@1 b@2
			watch latest -> add a@1; add b@2; wait 2s; close
			list any -> 7: b@2
			watch 7 -> hang`,
		handler: "add a@1 initial\nadd b@2 initial\ndelete a@1 missed\nsync b@2",
	},
	"watch: after an early end a newer version shows that there was no rewind": {
		server: `
			list any -> 5: a@1
			watch 5 -> wait 1m; close
			watch 5 -> bookmark 9; hang`,
		handler: "add a@1 initial",
	},
	"watch: after an early end silence is probed": {
		server: `
			list any -> 5: a@1
			watch 5 -> wait 1m; close
			watch 5 -> hang
			list latest limit=1 -> 5: a@1`,
		handler: "add a@1 initial",
		atLeast: time.Minute + time.Second, atMost: time.Minute + 2*time.Second,
	},
	"watch: after an early end a source that went back is read anew": {
		server: `
			list any -> 50: a@1 b@50
			watch 50 -> wait 1m; close
			watch 50 -> hang
			list latest limit=1 -> 30: a@1
			list latest limit=500 -> 31: a@1=other
			watch 31 -> hang`,
		handler: "add a@1 initial\nadd b@50 initial\ndelete b@50 missed\nupdate a@1 -> a@1=other",
		errors:  "the source went back in time",
		then: func(t *testing.T, r *tarn.Replica[*thing]) {
			if h := r.Health(); h.Rewinds != 1 || h.Version != "31" || h.Lists["rewound"] != 1 {
				t.Errorf("health: %+v", h)
			}
		},
	},
	"watch: nothing within a second is an error": {
		server: `
			list any -> 5: a@1
			watch 5 -> close
			list 5 -> 5: a@1
			watch 5 -> hang`,
		handler: "add a@1 initial\nsync a@1",
		errors:  "very short watch: it ended within a second and brought nothing",
	},
	"watch: hasty ends are slowed down": {
		server: `
			list any -> 5: a@1
			watch 5 -> bookmark 6; close
			watch 6 -> bookmark 7; close
			watch 7 -> bookmark 8; close
			watch 8 -> bookmark 9; close
			watch 9 -> bookmark 10; close
			watch 10 -> bookmark 11; close
			watch 11 -> bookmark 12; hang`,
		handler: "add a@1 initial",
		atLeast: 800 * time.Millisecond, atMost: 1700 * time.Millisecond,
	},
	"watch: refused is retried at the same version": {
		server: `
			list any -> 5: a@1
			watch 5 -> error refused
			watch 5 -> error refused
			watch 5 -> add b@6; hang`,
		handler: "add a@1 initial\nadd b@6",
		errors:  "refused\nrefused",
		atLeast: 2400 * time.Millisecond,
	},
	"watch: a lost connection is resumed at the same version, and a rewind suspected": {
		server: `
			list any -> 5: a@1
			watch 5 -> add b@6; wait 1m; error lost
			watch 6 -> hang
			list latest limit=1 -> 6: a@1`,
		handler: "add a@1 initial\nadd b@6",
		errors:  "connection lost",
	},
	"watch: an answer that a version is gone is not made to wait for long": {
		server: `
			list any -> 5: a@1
			watch 5 -> error refused
			watch 5 -> error refused
			watch 5 -> error refused
			watch 5 -> error refused
			watch 5 -> error expired
			list latest -> 9: a@1
			watch 9 -> hang`,
		handler: "add a@1 initial\nsync a@1",
		errors:  "refused\nrefused\nrefused\nrefused\nexpired",
		atMost:  26 * time.Second,
	},
	"watch: busy is retried at the same version after Retry-After": {
		server: `
			list any -> 5: a@1
			watch 5 -> error busy after=20s
			watch 5 -> add b@6; error busy after=20s
			watch 6 -> hang`,
		handler: "add a@1 initial\nadd b@6",
		errors:  "busy\nbusy",
		atLeast: 40 * time.Second, atMost: 41 * time.Second,
	},
	"watch: expired on connecting is read consistently": {
		server: `
			list any -> 5: a@1
			watch 5 -> error expired
			list latest -> 9: b@9
			watch 9 -> hang`,
		handler: "add a@1 initial\ndelete a@1 missed\nadd b@9",
		errors:  "expired",
	},
	"watch: expired inside the stream is read consistently": {
		server: `
			list any -> 5: a@1
			watch 5 -> mod a@6; error expired
			list latest -> 9: a@6
			watch 9 -> hang`,
		handler: "add a@1 initial\nupdate a@1 -> a@6\nsync a@6",
		errors:  "expired",
	},
	"watch: internal errors end the pass": {
		server: `
			list any -> 5: a@1
			watch 5 -> error internal
			list 5 -> 5: a@1
			watch 5 -> hang`,
		handler: "add a@1 initial\nsync a@1",
		errors:  "internal error",
	},
	"watch: internal errors are retried for as long as asked": {
		server: `
			list any -> 5: a@1
			watch 5 -> wait 2s; error internal
			watch 5 -> wait 20s; error internal
			watch 5 -> wait 20s; error internal
			list 5 -> 5: a@1
			watch 5 -> hang`,
		opts:    tarn.Options[*thing]{RetryInternal: func() time.Duration { return 30 * time.Second }},
		handler: "add a@1 initial\nsync a@1",
		errors:  "internal error\ninternal error\ninternal error",
	},
	"watch: any other error inside the stream is reported and listed": {
		server: `
			list any -> 5: a@1
			watch 5 -> error forbidden
			list 5 -> 5: a@1
			watch 5 -> hang`,
		handler: "add a@1 initial\nsync a@1",
		errors:  "forbidden",
	},
	"watch: any other error on connecting is reported and listed": {
		server: `
			list any -> 5: a@1
			watch 5 -> error forbidden
			list 5 -> 5: a@1
			watch 5 -> hang`,
		handler: "add a@1 initial\nsync a@1",
		errors:  "forbidden",
	},
	"watch: no answer at all is given up": {
		server: `
			list any -> 5: a@1
			watch 5 -> noanswer
			list 5 -> 5: a@1
			watch 5 -> hang`,
		handler: "add a@1 initial\nsync a@1",
		errors:  "no answer",
		atLeast: 150 * time.Second, atMost: 152 * time.Second,
	},
	"watch: silence is probed and the watch replaced": {
		server: `
			list any -> 5: a@1
			watch 5 -> bookmark 6; hang
			list latest limit=1 -> 6: a@1
			watch 6 -> hang`,
		handler: "add a@1 initial",
		errors:  "the watch fell silent",
		atLeast: 150 * time.Second, atMost: 151 * time.Second,
	},
	"watch: silence after a stream of initial events is a failure": {
		opts: tarn.Options[*thing]{WatchList: true},
		server: `
			stream latest -> add a@1; end 5; hang
			list latest limit=1 -> 5: a@1
			watch 5 -> hang`,
		handler: "add a@1 initial",
		errors:  "the watch fell silent",
	},
	"watch: silence of a source without bookmarks is no failure": {
		server: `
			list any -> 5: a@1
			watch 5 -> add b@6; hang
			list latest limit=1 -> 6: a@1
			watch 6 -> hang`,
		handler: "add a@1 initial\nadd b@6",
	},
	"watch: silence of a source that went back": {
		server: `
			list any -> 50: a@1 b@50
			watch 50 -> hang
			list latest limit=1 -> 30: a@1
			list latest -> 30: a@1
			watch 30 -> hang`,
		handler: "add a@1 initial\nadd b@50 initial\ndelete b@50 missed\nsync a@1",
		errors:  "the source went back in time",
	},
	"watch: silence of a source that does not answer either": {
		server: `
			list any -> 5: a@1
			watch 5 -> hang
			list latest limit=1 -> error refused
			watch 5 -> add b@6; hang`,
		handler: "add a@1 initial\nadd b@6",
		errors:  "refused",
	},
	"event: a bookmark older than what was seen is probed": {
		server: `
			list any -> 50: a@1
			watch 50 -> bookmark 30; hang
			list latest limit=1 -> 31: a@1
			list latest -> 31: a@1
			watch 31 -> hang`,
		handler: "add a@1 initial\nsync a@1",
		errors:  "the source went back in time",
	},
	"event: an older state of a key is dropped and probed": {
		server: `
			list any -> 50: a@40
			watch 50 -> mod a@30; hang
			list latest limit=1 -> 50: a@40`,
		handler: "add a@40 initial",
		store:   "a@40",
	},
	"event: duplicates and replays are dropped": {
		server: `
			list any -> 5: a@1
			watch 5 -> mod a@6; mod a@6; add a@6; del a@7; del a@7; add a@6; add a@8; hang
			list latest limit=1 -> 8: a@8`,
		handler: "add a@1 initial\nupdate a@1 -> a@6\ndelete a@7\nadd a@8",
		store:   "a@8",
	},
	"event: a replayed life stays over": {
		server: `
			list any -> 5: a@1
			watch 5 -> del a@6; add a@7; del a@8; del a@6; add a@7; hang
			list latest limit=1 -> 8:`,
		handler: "add a@1 initial\ndelete a@6\nadd a@7\ndelete a@8",
	},
	"event: reordered across keys, each is still taken": {
		server: `
			list any -> 5:
			watch 5 -> add b@7; add a@6; hang
			list latest limit=1 -> 7: a@6`,
		handler: "add b@7\nadd a@6",
		store:   "a@6 b@7",
	},
	"event: an added that is there is an update, a modified that is not an add": {
		server: `
			list any -> 5: a@1
			watch 5 -> add a@6; mod b@7; del c@8; hang`,
		handler: "add a@1 initial\nupdate a@1 -> a@6\nadd b@7",
	},
	"event: delete and create again": {
		server: `
			list any -> 5: a@1/u1
			watch 5 -> del a@6/u1; add a@7/u2; hang`,
		handler: "add a@1/u1 initial\ndelete a@6/u1\nadd a@7/u2",
	},
	"event: an undecodable one costs one consistent list": {
		server: `
			list any -> 5: a@1
			watch 5 -> garbled; hang
			list latest -> 7: a@6
			watch 7 -> garbled; add b@9; hang`,
		handler: "add a@1 initial\nupdate a@1 -> a@6\nadd b@9",
		bad:     "?\n?",
		atMost:  2 * time.Second,
	},
	"event: undecodable ones cost a list only once in a while": {
		server: `
			list any -> 5: a@1
			watch 5 -> garbled; hang
			list latest -> 7: a@6
			watch 7 -> garbled; garbled; hang
			list latest -> 9: a@8
			watch 9 -> hang`,
		opts:    tarn.Options[*thing]{SilenceLimit: -1},
		handler: "add a@1 initial\nupdate a@1 -> a@6\nupdate a@6 -> a@8",
		bad:     "?\n?\n?",
		atLeast: 10 * time.Minute, atMost: 10*time.Minute + 5*time.Second,
	},
	"event: an object that cannot be named costs a list a minute later": {
		server: `
			list any -> 5: a@1 b@2
			watch 5 -> del nil; wait 50s; bookmark 6; hang
			list latest -> 9: a@1
			watch 9 -> hang`,
		handler: "add a@1 initial\nadd b@2 initial\ndelete b@2 missed\nsync a@1",
		bad:     "?",
		atLeast: time.Minute, atMost: 2 * time.Minute,
	},
	"stream: initial events are the state, and the stream goes on": {
		opts: tarn.Options[*thing]{WatchList: true},
		server: `
			stream latest -> add a@1; add b@2; mod a@3; add c@4; del c@5; end 5; add d@6; hang`,
		handler: "add a@3 initial\nadd b@2 initial\nadd d@6",
		store:   "a@3 b@2 d@6",
	},
	"stream: later ones begin at what was seen": {
		opts: tarn.Options[*thing]{WatchList: true},
		server: `
			stream latest -> add a@1; end 5; error boom
			stream 5 -> add a@1; add b@6; end 6; hang`,
		handler: "add a@1 initial\nadd b@6\nsync a@1",
		errors:  "boom",
	},
	"stream: closing early three times gives it up": {
		opts: tarn.Options[*thing]{WatchList: true},
		server: `
			stream latest -> add a@1; close
			stream latest -> close
			stream latest -> add a@1; close
			list any -> 5: a@1
			watch 5 -> error boom
			list 5 -> 5: a@1
			watch 5 -> hang`,
		handler: "add a@1 initial\nsync a@1",
		errors:  strings.Repeat("the stream of initial events did not come to its end\n", 3) + "boom",
		then: func(t *testing.T, r *tarn.Replica[*thing]) {
			if !r.Health().WatchListGivenUp {
				t.Error("Health does not say that the watch list was given up")
			}
		},
	},
	"stream: no end within the deadline": {
		opts: tarn.Options[*thing]{WatchList: true, WatchListDeadline: 10 * time.Second},
		server: `
			stream latest -> add a@1; wait 8s; add b@2; bookmark 3; hang
			stream latest -> add a@1; end 5; hang`,
		handler: "add a@1 initial",
		errors:  "the stream of initial events did not come to its end",
		atLeast: 18 * time.Second, atMost: 20 * time.Second,
	},
	"stream: refused by the source is remembered": {
		opts: tarn.Options[*thing]{WatchList: true},
		server: `
			stream latest -> error nowatchlist
			list any -> 5: a@1
			watch 5 -> error boom
			list 5 -> 5: a@1
			watch 5 -> hang`,
		handler: "add a@1 initial\nsync a@1",
		errors:  "boom",
	},
	"stream: another failure falls back to a list this time": {
		opts: tarn.Options[*thing]{WatchList: true},
		server: `
			stream latest -> add a@1; error boom
			list any -> 5: a@1
			watch 5 -> error expired
			stream latest -> add a@1; end 7; hang`,
		handler: "add a@1 initial\nsync a@1",
		errors:  "expired",
	},
	"stream: nobody there or busy is tried again": {
		opts: tarn.Options[*thing]{WatchList: true},
		server: `
			stream latest -> error refused
			stream latest -> error busy after=30s
			stream latest -> add a@1; end 5; hang`,
		handler: "add a@1 initial",
		errors:  "refused\nbusy",
		atLeast: 30 * time.Second,
	},
	"stream: an expired version is read consistently": {
		opts: tarn.Options[*thing]{WatchList: true},
		server: `
			stream latest -> add a@1; end 5; error boom
			stream 5 -> error expired
			stream latest -> add a@1; end 9; hang`,
		handler: "add a@1 initial\nsync a@1",
		errors:  "boom",
	},
	"stream: an end older than what was seen is a rewind": {
		opts: tarn.Options[*thing]{WatchList: true},
		server: `
			stream latest -> add a@1; add b@50; end 50; error boom
			stream 50 -> add a@1; end 30; hang
			stream latest -> add a@1; end 30; hang
			stream latest -> add a@1; end 30; hang`,
		handler: "add a@1 initial\nadd b@50 initial\ndelete b@50 missed\nsync a@1",
		errors:  "boom\nthe source went back in time",
	},
	"list: an answer older than what was seen is read consistently": {
		server: `
			list any -> 50: a@1 b@50
			watch 50 -> error boom
			list 50 -> 30: a@1
			list latest -> 51: a@1 b@50
			watch 51 -> hang`,
		handler: "add a@1 initial\nadd b@50 initial\nsync a@1\nsync b@50",
		errors:  "boom",
	},
	"list: a consistent answer older than what was seen is a rewind": {
		server: `
			list any -> 50: a@1 b@50
			watch 50 -> error boom
			list 50 -> error toonew
			list latest -> 30: a@1
			list latest -> 30: a@1
			watch 30 -> hang`,
		handler: "add a@1 initial\nadd b@50 initial\ndelete b@50 missed\nsync a@1",
		errors:  "boom\nthe source went back in time",
	},
	"recheck: the state is read consistently, comparing content": {
		server: `
			list any -> 5: a@1=x b@2 c@3
			watch 5 -> hang
			list latest -> 5: a@1=y b@2 d@4
			watch 5 -> hang`,
		meanwhile: recheckAfter(10 * time.Second),
		handler: `
			add a@1=x initial
			add b@2 initial
			add c@3 initial
			delete c@3 missed
			update a@1=x -> a@1=y
			add d@4
			sync b@2`,
		atLeast: 10 * time.Second, atMost: 12 * time.Second,
		then: rechecked,
	},
	"recheck: as a stream it begins at latest": {
		opts: tarn.Options[*thing]{WatchList: true},
		server: `
			stream latest -> add a@1=x; end 5; hang
			stream latest -> add a@1=y; end 5; hang`,
		meanwhile: recheckAfter(10 * time.Second),
		handler:   "add a@1=x initial\nupdate a@1=x -> a@1=y",
		then:      rechecked,
	},
	"recheck: it outlives failures": {
		server: `
			list any -> 5: a@1=x
			watch 5 -> hang
			list latest -> error boom
			list latest -> 5: a@1=y
			watch 5 -> hang`,
		meanwhile: recheckAfter(10 * time.Second),
		handler:   "add a@1=x initial\nupdate a@1=x -> a@1=y",
		errors:    "boom",
		then:      rechecked,
	},
	"recheck: a source that went back is still found out": {
		server: `
			list any -> 50: a@1=x
			watch 50 -> hang
			list latest -> 30: a@1=y
			list latest -> 30: a@1=y
			watch 30 -> hang`,
		meanwhile: recheckAfter(10 * time.Second),
		handler:   "add a@1=x initial\nupdate a@1=x -> a@1=y",
		errors:    "the source went back in time",
	},
}

func recheckAfter(d time.Duration) func(*tarn.Replica[*thing]) {
	return func(r *tarn.Replica[*thing]) {
		time.Sleep(d)
		r.Recheck("doubted")
		r.Recheck("doubted") // one with the first
	}
}

func rechecked(t *testing.T, r *tarn.Replica[*thing]) {
	t.Helper()
	time.Sleep(time.Minute)
	if h := r.Health(); h.Lists["doubted"] != 1 || h.Err != nil || h.State != tarn.StateWatching {
		t.Errorf("%s; lists %v", h, h.Lists)
	}
}

func TestProtocol(t *testing.T) {
	for name, s := range stories {
		t.Run(name, s.run)
	}
}

// TestStopFromEveryState stops a replica at each kind of wait.
func TestStopFromEveryState(t *testing.T) {
	states := map[string]story{
		"mid-list":            {server: "list any -> hang"},
		"between pages":       {server: "list any -> 5: a@1 more=t\nlist any continue=t -> hang"},
		"waiting for a retry": {server: "list any -> error boom", errors: "boom"},
		"mid-stream":          {opts: tarn.Options[*thing]{WatchList: true}, server: "stream latest -> add a@1; hang"},
		"stream to be retried": {opts: tarn.Options[*thing]{WatchList: true}, server: "stream latest -> close",
			errors: "the stream of initial events did not come to its end"},
		"mid-watch":      {server: "list any -> 5:\nwatch 5 -> hang"},
		"watch refused":  {server: "list any -> 5:\nwatch 5 -> error refused", errors: "refused"},
		"probing":        {server: "list any -> 5:\nwatch 5 -> wait 1m; close\nwatch 5 -> hang\nlist latest limit=1 -> hang"},
		"resync waiting": {opts: tarn.Options[*thing]{ResyncPeriod: time.Hour}, server: "list any -> 5:\nwatch 5 -> hang"},
	}
	for name, s := range states {
		t.Run(name, s.run)
	}
}

func TestResyncOffersAgain(t *testing.T) {
	var asked atomic.Int32
	story{
		server: `
			list any -> 5: a@1
			watch 5 -> wait 25s; add b@6; hang`,
		opts: tarn.Options[*thing]{ResyncPeriod: 10 * time.Second, ShouldResync: func() bool { return asked.Add(1) != 2 }},
		then: func(t *testing.T, _ *tarn.Replica[*thing]) {
			time.Sleep(26 * time.Second)
			if n := asked.Load(); n != 2 {
				t.Errorf("asked %d times", n)
			}
		},
		handler: "add a@1 initial\nsync a@1\nadd b@6",
	}.run(t)
}

// blindStore cannot be asked; it notes what it is told.
type blindStore struct{ seen *transcript }

func (s blindStore) Replace(items []tarn.Item[*thing], at tarn.Position) error {
	line := "replace"
	for _, item := range items {
		line += " " + item.Object.String()
	}
	s.seen.add("store", line+" at "+string(at.Version))
	return nil
}

func (s blindStore) Apply(changes []tarn.Change[*thing], at tarn.Position) error {
	line := "apply"
	for _, c := range changes {
		line += " " + map[tarn.ChangeType]string{tarn.Add: "add ", tarn.Update: "update ", tarn.Delete: "delete "}[c.Type] + c.Object.String()
	}
	s.seen.add("store", line+" at "+string(at.Version))
	return nil
}

// failingResync is a store whose resync fails.
type failingResync struct{ blindStore }

func (failingResync) Resync() error { return errors.New("no resync") }

// reflect runs a reflector over a script into a store until the script is over.
func reflect(t *testing.T, server string, store func(*transcript) tarn.Store[*thing], opts tarn.Options[*thing]) *transcript {
	t.Helper()
	seen := &transcript{}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		source := newScripted(t, server)
		opts.OnError = func(_ context.Context, err error) { seen.add("error", describeError(err)) }
		r, err := tarn.NewReflector(source, store(seen), opts)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		<-source.over
		synctest.Wait()
		cancel()
		<-done
	})
	return seen
}

func TestResyncFailureEndsThePass(t *testing.T) {
	seen := reflect(t, `
		list any -> 5: a@1
		watch 5 -> hang
		list 5 -> 5: a@1
		watch 5 -> hang`,
		func(seen *transcript) tarn.Store[*thing] { return failingResync{blindStore{seen}} },
		tarn.Options[*thing]{ResyncPeriod: time.Minute})
	compare(t, "errors", "no resync", seen.of("error"))
	compare(t, "store", "replace a@1 at 5\nreplace a@1 at 5", seen.of("store"))
}

// TestBlindStoreGetsEverythingAsTold: a store that cannot be asked is not
// compared with and nothing is left out.
func TestBlindStoreGetsEverythingAsTold(t *testing.T) {
	seen := reflect(t, `
		list any -> 5: a@1
		watch 5 -> add a@6; add a@6; del b@7; bookmark 9; error boom
		list 9 -> 9: a@6
		watch 9 -> hang`,
		func(seen *transcript) tarn.Store[*thing] { return blindStore{seen} }, tarn.Options[*thing]{})
	compare(t, "store", `
		replace a@1 at 5
		apply add a@6 at 6
		apply add a@6 at 6
		apply delete b@7 at 7
		apply at 9
		replace a@6 at 9`, seen.of("store"))
}

// TestProtocolIsWrittenDown compares docs/protocol.md with the stories.
func TestProtocolIsWrittenDown(t *testing.T) {
	doc, err := os.ReadFile("docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	all := maps.Clone(stories)
	maps.Copy(all, warmStories)
	named := map[string]bool{}
	for _, line := range lines(string(doc)) {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) != 3 || !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") || strings.TrimSpace(cells[0]) == "event" {
			continue
		}
		name := strings.Trim(strings.TrimSpace(cells[2]), "`")
		named[name] = true
		if _, ok := all[name]; !ok {
			t.Errorf("the cell %q names a story that does not exist: %q", strings.TrimSpace(cells[0]), name)
		}
	}
	for name := range all {
		if !named[name] {
			t.Errorf("no cell of docs/protocol.md names the story %q", name)
		}
	}
}
