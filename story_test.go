package tarn_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/story"
)

var update = flag.Bool("update", false, "write what is seen into the stories; then read every line of the difference")

// observed are the sections that say what must be seen, in the order in which they
// are written. One that is not there must stay empty.
var observed = []string{"requests", "handler", "store", "health", "errors", "reported", "calls"}

// readStories reads the stories of a folder of testdata/stories. docs/testing.md
// describes the format.
func readStories(t *testing.T, folder string) []*story.File {
	t.Helper()
	files, err := story.ReadFolder("testdata/stories/" + folder)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// tellStories tells each story of a folder to a reflector, and compares what is
// seen with what the story says.
func tellStories(t *testing.T, folder string) {
	t.Helper()
	for _, f := range readStories(t, folder) {
		for _, s := range f.Stories {
			t.Run(s.Name, func(t *testing.T) {
				seen := tell(t, s)
				if *update {
					for _, section := range observed {
						s.Set(section, "")
						s.Set(section, seen[section])
					}
					return
				}
				checkStory(t, s, seen)
			})
		}
		if *update {
			if err := f.Write(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func checkStory(t *testing.T, s *story.Story, seen map[string]string) {
	for _, section := range observed {
		want, _ := s.Section(section)
		if got := seen[section]; got != want {
			t.Errorf("section %q\n--- want\n%s--- got\n%s--- difference (-want +got)\n%s", section, want, got,
				gocmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")))
		}
	}
	for section := range s.Sections() {
		if !slices.Contains(append([]string{"server", "user", "disk"}, observed...), section) {
			t.Errorf("nobody knows what the section %q means", section)
		}
	}
}

// A runner is a replica or a reflector.
type runner interface {
	Run(context.Context) error
	Health() tarn.Health
}

// tell plays a story in virtual time and returns what was seen, by section.
//
// It ends when the last answer has been asked for and all is calm again, or after
// the time that the setting "for" gives.
func tell(t *testing.T, s *story.Story) map[string]string {
	seen := &transcript{}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		source := newScripted(s.Script)
		options := storyOptions(t, s, seen)
		store := storyStore(t, s, seen)
		r := newRunner(t, s, source, store, options, seen)
		begin := time.Now()
		act(t, s, r)
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		select {
		case <-source.Over():
		case <-time.After(time.Hour):
			t.Errorf("the story did not come to its end; asked was:\n%s", source.Requests())
		}
		synctest.Wait()
		if took := time.Since(begin); !s.Took.Includes(took) {
			t.Errorf("took %s, expected %s to %s", took, s.Took.Least, s.Took.Most)
		}
		time.Sleep(s.With.Duration("for", 0) - time.Since(begin))
		synctest.Wait()
		seen.set("requests", source.Requests())
		version := r.Health().Version
		if content := reader(r, store); content != nil {
			seen.set("store", showStore(content))
			version = content.Version()
		}
		seen.set("health", showHealth(r.Health(), version))
		stopping := time.Now()
		cancel()
		<-done
		if d := time.Since(stopping); d > time.Second {
			t.Errorf("stopping took %s", d)
		}
		if source.open != 0 {
			t.Errorf("%d streams were left open", source.open)
		}
	})
	return seen.sections()
}

// newRunner makes a replica with a subscriber, or with the setting "reflector" a
// reflector. A store that cannot be read has no replica.
func newRunner(t *testing.T, s *story.Story, source tarn.Source[*thing], store tarn.Store[*thing], options tarn.Options[*thing], seen *transcript) runner {
	readable, ok := store.(tarn.ReadStore[*thing])
	if !ok || s.With.Has("reflector") {
		r, err := tarn.NewReflector(source, store, options)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r, err := tarn.NewReplica(source, readable, options)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Subscribe(func(c tarn.Change[*thing]) { seen.add("handler", describeChange(c)) },
		tarn.SubscribeOptions{Syncs: func() bool { return true }}); err != nil {
		t.Fatal(err)
	}
	return r
}

// act does what the user does: what is to be done before the start now, the rest
// at its time.
func act(t *testing.T, s *story.Story, r runner) {
	begin := time.Now()
	do := func(a story.Action) {
		replica, ok := r.(*tarn.Replica[*thing])
		if !ok || a.Verb != "recheck" {
			t.Errorf("the user cannot %s", a.Verb)
			return
		}
		replica.Recheck(strings.Join(a.Words, " "))
	}
	later := s.User
	for len(later) > 0 && later[0].At == story.Before {
		do(later[0])
		later = later[1:]
	}
	go func() {
		for _, a := range later {
			time.Sleep(time.Until(begin.Add(a.At)))
			do(a)
		}
	}()
}

// reader is who can be asked for the content: the replica if there is one, else the
// store if it can be read, else nil.
func reader(r runner, store tarn.Store[*thing]) tarn.Reader[*thing] {
	for _, candidate := range []any{r, store} {
		if content, ok := candidate.(tarn.Reader[*thing]); ok {
			return content
		}
	}
	return nil
}

// showStore is the content of a store and its version.
func showStore(s tarn.Reader[*thing]) string {
	var items []string
	for _, o := range s.All() {
		items = append(items, o.String())
	}
	slices.Sort(items)
	return fmt.Sprintf("%s (version %s)\n", strings.Join(items, " "), s.Version())
}

// showHealth is what Health says that is not as usual: the usual copy was read
// once, is complete, and follows its source at the version of the store.
func showHealth(h tarn.Health, version tarn.Version) string {
	var b strings.Builder
	say := func(unusual bool, format string, args ...any) {
		if unusual {
			fmt.Fprintf(&b, format+"\n", args...)
		}
	}
	say(h.State != tarn.StateWatching, "%s", h.State)
	say(!h.Synced, "not synced")
	say(h.FromDisk, "from disk")
	say(h.Version != version, "version %s", h.Version)
	if h.Err != nil {
		say(true, "failures: %d (%s)", h.Failures, describeError(h.Err))
	}
	var lists []string
	for cause, n := range h.Lists {
		lists = append(lists, fmt.Sprintf("%s %d", cause, n))
	}
	slices.Sort(lists)
	text := cmp.Or(strings.Join(lists, ", "), "none")
	say(text != "start 1", "lists: %s", text)
	var bad []string
	for _, o := range h.Bad {
		bad = append(bad, strings.TrimSuffix(fmt.Sprintf("%s@%s", o.Key, o.Version), "@"))
	}
	if unnamed := h.BadCount - len(h.Bad); unnamed > 0 {
		bad = append(bad, fmt.Sprintf("%d without a name", unnamed))
	}
	say(len(bad) > 0, "bad: %s", strings.Join(bad, ", "))
	say(h.Rewinds > 0, "rewinds: %d", h.Rewinds)
	say(h.WatchListGivenUp, "streams given up")
	return b.String()
}
