package relay

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
)

// exact lists a state at a version, as text.
func exact(t *testing.T, s *state, namespace string, version int64) (string, error) {
	t.Helper()
	listing, err := s.List(t.Context(), namespace, apiserver.At{Match: apiserver.Exact, Version: version})
	if err == nil && listing.Version != version {
		t.Errorf("the list at %d says that it is of %d", version, listing.Version)
	}
	var all []string
	for _, o := range listing.Objects {
		all = append(all, fmt.Sprint(o.Key(), "@", o.Version()))
	}
	return strings.Join(all, " "), err
}

// Lists at every version that the journal reaches back to are what the content was then,
// also after a restart, with contents that are damaged or gone, and with additions, updates
// and deletes on either side of a content. Memory holds only the last few events.
func TestExactListsFromDisk(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		r := newJournalRig(t, dir)
		r.state.bytes, r.journal.logSize = 2<<10, 2<<10
		states := map[int64]string{}
		for i := range 600 {
			time.Sleep(2 * time.Second)
			r.version++
			name := fmt.Sprint("p", i*7%13)
			o := r.object(name, "uid", "a")
			change := tarn.Change[Object]{Type: tarn.Update, Key: tarn.Key(o.Key()), Object: o, Version: text(o)}
			if i%5 == 4 {
				change.Type = tarn.Delete
			}
			r.take(tarn.Batch[Object]{Changes: []tarn.Change[Object]{change}})
			states[r.version] = contentText(r.state)
			if i%3 == 0 {
				r.version++ // of another resource
				r.take(tarn.Batch[Object]{})
				states[r.version] = contentText(r.state)
			}
		}
		compare := func(when string, s *state) {
			t.Helper()
			oldest, ok := s.journal.floor()
			if !ok || oldest > 110 || s.log.floor <= oldest+500 {
				t.Fatalf("%s: the journal reaches back to %d, memory to %d", when, oldest, s.log.floor)
			}
			for version := oldest + 1; version <= r.version; version++ {
				if got, err := exact(t, s, "", version); err != nil || got != states[version] {
					t.Fatalf("%s: at %d there is %q, want %q; %v", when, version, got, states[version], err)
				}
			}
			if _, err := exact(t, s, "", oldest-1); !errors.Is(err, apiserver.ErrExpired) {
				t.Errorf("%s: before the journal: %v", when, err)
			}
			if got, err := exact(t, s, "elsewhere", oldest+200); err != nil || got != "" {
				t.Errorf("%s: another namespace has %q, %v", when, got, err)
			}
		}
		r.journal.background.Wait()
		if n := len(r.journal.contents); n < 3 {
			t.Fatalf("there are %d contents", n)
		}
		compare("at first", r.state)
		r.Close()

		again, _ := diskState(t, dir, 2<<10)
		if len(again.journal.contents) < 3 {
			t.Errorf("after a restart there are %d contents", len(again.journal.contents))
		}
		compare("after a restart", again.state)
		files := slices.Clone(again.journal.contents)
		if err := os.Truncate(files[0].path, files[0].size/2); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(files[1].path); err != nil {
			t.Fatal(err)
		}
		again.journal.past.clear()
		compare("with a damaged and a lost content", again.state)
		if n := len(again.journal.contents); n != len(files)-2 {
			t.Errorf("%d of %d contents are left", n, len(files))
		}
		again.Close()
	})
}

// Pages of one list read the disk once. The content is released after a minute, and is never
// that from before a rewind.
func TestPastIsShared(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		r := newJournalRig(t, dir)
		defer r.Close()
		r.state.bytes = 1
		r.update(50)
		want, err := exact(t, r.state, "", 120)
		if err != nil {
			t.Fatal(err)
		}
		held := func() int { return len(r.journal.past.objects) }
		if held() == 0 {
			t.Error("nothing is held")
		}
		_ = r.journal.logs[0].file.Close() // nothing can be read any more
		if got, err := exact(t, r.state, "", 120); err != nil || got != want {
			t.Errorf("the second page: %q, %v", got, err)
		}
		if _, err := exact(t, r.state, "", 121); !errors.Is(err, apiserver.ErrExpired) {
			t.Errorf("another version on a disk that cannot be read: %v", err)
		}
		time.Sleep(2 * pastPatience)
		r.trim(time.Now())
		if held() != 0 {
			t.Error("a content is held that nobody has asked for lately")
		}
	})
}
