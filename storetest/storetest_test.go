package storetest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarnproject/tarn"
)

func TestPlainStorePasses(t *testing.T) {
	Run(t, func(*testing.T) tarn.ReadStore[Object] { return newPlain() })
}

// recorder is a reporter that only writes down.
type recorder struct {
	mu     sync.Mutex
	errors []string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

// TestBrokenStoresFail shows that the suite can fail: each store breaks one line
// of the contract, and the check that is there for it has to say so.
func TestBrokenStoresFail(t *testing.T) {
	for _, broken := range []struct {
		name  string
		store func() tarn.ReadStore[Object]
		check string // which has to fail
		says  string // in one of its errors
	}{
		{"holds what was deleted", func() tarn.ReadStore[Object] { return holdsGone{newPlain(), map[tarn.Key]Object{}} },
			"apply adds, updates and deletes", `Held("a") gave {Name:a Generation:2}, want none`},
		{"holds what was first", func() tarn.ReadStore[Object] { return holdsFirst{newPlain(), map[tarn.Key]Object{}} },
			"apply adds, updates and deletes", `Held("a") gave {Name:a Generation:1}, true, want {Name:a Generation:2}`},
		{"loses deletes", func() tarn.ReadStore[Object] { return losesDeletes{newPlain()} },
			"apply adds, updates and deletes", `"a" has generation 2, want none`},
		{"replace merges", func() tarn.ReadStore[Object] { return replaceMerges{newPlain()} },
			"replace is exact: keeps, changes, adds and takes away", `"gone" has generation 3, want none`},
		{"replace keeps the old object", func() tarn.ReadStore[Object] { return replaceKeepsOld{newPlain()} },
			"replace is exact: keeps, changes, adds and takes away", `"changed" has generation 2, want 4`},
		{"version ahead of an apply", func() tarn.ReadStore[Object] { return versionAhead{newPlain()} },
			"readers see each apply whole, with its version", "must change together"},
		{"version ahead of a replace", func() tarn.ReadStore[Object] { return versionAhead{newPlain()} },
			"readers see each replace whole, with its version", "must change together"},
		{"version behind", func() tarn.ReadStore[Object] { return versionBehind{newPlain()} },
			"readers see each apply whole, with its version", "must change together"},
		{"batch in pieces", func() tarn.ReadStore[Object] { return tornApply{newPlain()} },
			"readers see each apply whole, with its version", ""},
		{"replace in pieces", func() tarn.ReadStore[Object] { return tornReplace{newPlain()} },
			"readers see each replace whole, with its version", ""},
		{"keeps the slice of a replace", func() tarn.ReadStore[Object] { return &keepsSlices{plain: newPlain()} },
			"the slice of a replace is not kept", `Get("a")`},
		{"keeps the slice of an apply", func() tarn.ReadStore[Object] { return &keepsSlices{plain: newPlain()} },
			"the slice of an apply is not kept", `Get("a")`},
		{"walk mixes, during an apply", func() tarn.ReadStore[Object] { return allMixes{newPlain()} },
			"a walk shows one state although a batch is applied meanwhile", "did not stay with the state"},
		{"walk mixes, during a replace", func() tarn.ReadStore[Object] { return allMixes{newPlain()} },
			"a walk shows one state although all is replaced meanwhile", "did not stay with the state"},
		{"walk locks writers out", func() tarn.ReadStore[Object] { return allLocks{newPlain()} },
			"a walk shows one state although a batch is applied meanwhile", "must not hold writers up"},
		{"walk only once", func() tarn.ReadStore[Object] { return allOnce{newPlain()} },
			"a walk can be ended early and begun again", "gave 0 of 3"},
		{"walk repeats", func() tarn.ReadStore[Object] { return allRepeats{newPlain()} },
			"replace fills an empty store", "twice"},
		{"ignores bookmarks", func() tarn.ReadStore[Object] { return ignoresBookmarks{newPlain()} },
			"apply without changes moves only the version", `Version is "1", want "7"`},
		{"bookmark clears", func() tarn.ReadStore[Object] { return bookmarkClears{newPlain()} },
			"apply without changes moves only the version", `"a" is missing`},
		{"delete needs a key", func() tarn.ReadStore[Object] { return deleteNeedsKey{newPlain()} },
			"deleting an absent key changes nothing but the version", "no such key"},
		{"deletes last", func() tarn.ReadStore[Object] { return deletesLast{newPlain()} },
			"apply takes the changes of one key in their order", `"a" is missing`},
		{"trims versions", func() tarn.ReadStore[Object] { return trimsVersions{newPlain()} },
			"versions are kept as they are", `Version is "7", want "007"`},
		{"versions only forward", func() tarn.ReadStore[Object] { return onlyForward{newPlain()} },
			"replace may go back to an older version", `Version is "9", want "2"`},
		{"folds case", func() tarn.ReadStore[Object] { return foldsCase{newPlain()} },
			"keys are kept apart, whatever is in them", `"A" is missing`},
		{"small batches", func() tarn.ReadStore[Object] { return smallBatches{newPlain()} },
			"a batch may be large", "and 3989 more"},
		{"ghosts", func() tarn.ReadStore[Object] { return ghosts{newPlain(), map[tarn.Key]Object{}} },
			"apply adds, updates and deletes", "false, want none"},
		{"counts writes", func() tarn.ReadStore[Object] { return countsWrites{newPlain(), new(atomic.Int64)} },
			"apply adds, updates and deletes", "Len is 2, want 1"},
		{"refuses", func() tarn.ReadStore[Object] { return refuses{newPlain()} },
			"apply adds, updates and deletes", "read-only"},
		{"begins at a version", func() tarn.ReadStore[Object] { return newNotEmpty() },
			"a new store is empty and has no version", `Version is "0", want ""`},
	} {
		t.Run(broken.name, func(t *testing.T) {
			i := slices.IndexFunc(checks, func(c check) bool { return c.name == broken.check })
			if i < 0 {
				t.Fatalf("there is no check %q", broken.check)
			}
			var r recorder
			// Readers that are to catch a writer in the act may be kept from running all
			// the while, where others want the processors too.
			for range 20 {
				if checks[i].run(&rig{T: &r, store: broken.store(), patience: 50 * time.Millisecond}); len(r.errors) > 0 {
					break
				}
			}
			if len(r.errors) == 0 {
				t.Fatalf("the check %q let it pass", broken.check)
			}
			if !strings.Contains(strings.Join(r.errors, "\n"), broken.says) {
				t.Errorf("no error says %q:\n%s", broken.says, strings.Join(r.errors, "\n"))
			}
		})
	}
}

// The random check has no store of its own; it should find what is wrong with
// sequential writes whatever it is.
func TestRandomCheckFindsSequentialFaults(t *testing.T) {
	for name, store := range map[string]tarn.ReadStore[Object]{
		"loses deletes":     losesDeletes{newPlain()},
		"replace merges":    replaceMerges{newPlain()},
		"deletes last":      deletesLast{newPlain()},
		"ignores bookmarks": ignoresBookmarks{newPlain()},
		"ghosts":            ghosts{newPlain(), map[tarn.Key]Object{}},
	} {
		var r recorder
		random[0].run(&rig{T: &r, store: store})
		if len(r.errors) == 0 {
			t.Errorf("%s: not found", name)
		}
	}
}
