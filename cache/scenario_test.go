package cache

import (
	"flag"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	clientfeatures "k8s.io/client-go/features"
	clientfeaturestesting "k8s.io/client-go/features/testing"
	"k8s.io/klog/v2"

	"github.com/tarnproject/tarn/internal/story"
)

var update = flag.Bool("update", false, "write what is seen into the scenarios; then read every line of the difference")

// A scenario is a story that runs against client-go and against this package;
// docs/testing.md describes the format.
type scenario struct {
	*story.Story
	file *story.File
}

func readScenarios(t *testing.T) []scenario {
	t.Helper()
	files, err := story.ReadFolder("testdata/scenarios")
	if err != nil {
		t.Fatal(err)
	}
	var all []scenario
	for _, f := range files {
		for _, s := range f.Stories {
			all = append(all, scenario{s, f})
		}
	}
	return all
}

// TestScenarios tells the same stories to client-go and to this package, and
// compares what each does with what the story says. Where the two differ on
// purpose the story has a section for client-go and says why, so that a wrong
// claim about client-go fails as well.
func TestScenarios(t *testing.T) {
	quiet(t)
	for _, s := range readScenarios(t) {
		t.Run(s.Name, func(t *testing.T) {
			clientfeaturestesting.SetFeatureDuringTest(t, clientfeatures.WatchListClient, s.With.Has("watchlist"))
			if *update {
				s.update(t)
				return
			}
			for _, kind := range s.kinds() {
				for _, run := range []struct {
					library
					name   string
					buffer int
				}{{ours, "ours", 0}, {ours, "ours, in batches", 100}, {clientGo, "client-go", 0}} {
					t.Run(kind+" of "+run.name, func(t *testing.T) {
						s.check(t, run.library, kind, s.tell(t, run.library, kind, run.buffer))
					})
				}
			}
			s.checkClaims(t)
		})
	}
}

func (s scenario) kinds() []string {
	if len(s.Only) > 0 {
		return s.Only
	}
	return append(slices.Clone(kindNames), s.Also...)
}

// tell runs the scenario and returns what was seen.
func (s scenario) tell(t *testing.T, l library, kind string, buffer int) map[string]string {
	r := newRecorder(s.With)
	r.catchReports(t)
	var seen map[string]string
	synctest.Test(t, func(t *testing.T) {
		server := newServer(s.Script, s.objects(), buffer)
		server.lenient = l.name == clientGo.name // it forgets the watch of a state that the store refuses
		c := kinds[kind](l, s, server, r)
		took := live(c, s, r)
		seen = c.observe()
		seen["requests"], seen["stop"] = server.log(), ""
		switch {
		case took > 500*time.Millisecond:
			seen["stop"] = "late\n"
		case took > 0:
			seen["stop"] = "within half a second\n"
		}
		if took > time.Second && l.name == ours.name {
			t.Errorf("it took %v to stop", took)
		}
		time.Sleep(s.With.Duration("linger", 0)) // for calls that cannot be told to stop
	})
	return seen
}

// nothing stands in a section of client-go's where it does nothing.
const nothing = "(nothing)\n"

// expected finds what a kind of a library must show in a section.
func (s scenario) expected(l library, kind, section string) string {
	names := []string{kind + "/" + section, section}
	if l.name == clientGo.name {
		names = append([]string{"client-go/" + kind + "/" + section, "client-go/" + section}, names...)
	}
	for _, name := range names {
		if text, ok := s.Section(name); ok {
			if text == nothing {
				return ""
			}
			return text
		}
	}
	return ""
}

// check compares what was seen with what the scenario says.
func (s scenario) check(t *testing.T, l library, kind string, seen map[string]string) {
	for _, section := range slices.Sorted(keysOf(seen)) {
		want := s.expected(l, kind, section)
		if got := seen[section]; got != want {
			t.Errorf("%s of %s, section %q\n--- want\n%s--- got\n%s--- difference (-want +got)\n%s", kind, l.name, section, want, got,
				cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")))
		}
	}
}

// checkClaims finds sections that claim a difference where there is none, and
// differences that nobody explains.
func (s scenario) checkClaims(t *testing.T) {
	differs := false
	for name, text := range s.Sections() {
		claim, ok := strings.CutPrefix(name, "client-go/")
		if !ok {
			continue
		}
		differs = true
		if s.Why == "" {
			t.Errorf("section %q differs from ours, and there is no line of why", name)
		}
		kind, section, some := strings.Cut(claim, "/")
		if !some {
			kind, section = s.kinds()[0], claim
		}
		if _, others := s.Section("client-go/" + section); text == s.expected(ours, kind, section) && !(some && others) {
			t.Errorf("section %q says what ours says", name)
		}
	}
	if s.Why != "" && !differs {
		t.Error("there is a line of why, and nothing differs")
	}
}

// update writes what was seen into the scenario.
func (s scenario) update(t *testing.T) {
	for name := range s.Sections() {
		if name != "server" && name != "user" {
			s.Set(name, "")
		}
	}
	for _, l := range []library{ours, clientGo} {
		first := map[string]bool{}
		for _, kind := range s.kinds() {
			seen := s.tell(t, l, kind, 0)
			for _, section := range []string{"requests", "handler", "store", "synced", "calls", "errors", "reported", "panics", "results", "stop"} {
				text, ok := seen[section]
				also := first[section]
				first[section] = also || ok
				if !ok || text == s.expected(l, kind, section) {
					continue
				}
				if text == "" {
					text = nothing
				}
				name := section
				if also {
					name = kind + "/" + section
				}
				if l.name == clientGo.name {
					name = "client-go/" + name
				}
				s.Set(name, text)
			}
		}
	}
	if err := s.file.Write(); err != nil {
		t.Fatal(err)
	}
}

// quiet keeps what the clients log out of the test's output.
func quiet(t testing.TB) {
	t.Cleanup(klog.CaptureState().Restore)
	klog.SetLogger(logr.Discard())
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// result is the text of an error, "ok" if there is none.
func result(err error) string {
	if err == nil {
		return "ok"
	}
	return stripAddress(err.Error())
}

var address = regexp.MustCompile(`0x[0-9a-f]+`)

// stripAddress takes addresses in memory out of a text.
func stripAddress(text string) string { return address.ReplaceAllString(text, "0x…") }

func keysOf[V any](m map[string]V) iter.Seq[string] { return maps.Keys(m) }
