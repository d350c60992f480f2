package e2e

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tarnproject/tarn"
)

var record = flag.Bool("record", false, "write down what is observed on the real server, and do not compare it")

// compareObserved compares what a scenario showed with the recording from the real
// server. So every server is compared with the real one, also where the real one
// is not available.
func (s *testEnv) compareObserved(scenario, server string) {
	s.Helper()
	if s.Failed() {
		return // it has shown enough
	}
	file := filepath.Join("testdata", "observed", strings.NewReplacer(" ", "_", ",", "").Replace(scenario)+".txt")
	got := s.observed()
	if *record && server == realServer {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			s.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		s.Fatal(err)
	}
	if got != string(want) {
		s.Errorf("the real server showed otherwise when it was written down (-record does that)\n%s", lineDifference(string(want), got))
	}
}

// observed is what the scenario has shown, without what differs from run to run:
// generated names, times, versions and the number of retries. Copies that saw the
// same are grouped.
func (s *testEnv) observed() string {
	byView := map[string][]string{}
	var views []string
	for _, subject := range s.subjects {
		view := s.view(subject)
		if byView[view] == nil {
			views = append(views, view)
		}
		byView[view] = append(byView[view], subject.name)
	}
	var b strings.Builder
	for _, view := range views {
		fmt.Fprintf(&b, "%s\n%s\n", strings.Join(byView[view], ", "), view)
	}
	fmt.Fprintf(&b, "server\n%s", s.finalState())
	return b.String()
}

// view is what one copy saw.
func (s *testEnv) view(subject *subject) string {
	var b strings.Builder
	line := func(name string, words []string) {
		if len(words) > 0 {
			fmt.Fprintf(&b, "  %s: %s\n", name, strings.Join(words, " "))
		}
	}
	if subject.requests.beganWithStream() {
		line("began", []string{"with a stream"})
	} else {
		line("began", []string{"with a list"})
	}
	if !subject.ours && s.peersLost {
		return b.String() // its result is random
	}
	reasons := subject.failures.reasons()
	if s.mayExpire {
		reasons = without(reasons, "expired")
	}
	if subject.ours {
		h := subject.replica.Health()
		read := causes(h.Lists, len(reasons) > 0)
		if s.mayExpire {
			read = without(read, "expired")
		}
		line("read at", read)
		line("went back", []string{fmt.Sprint(h.Rewinds, " times")})
	}
	line("was told", reasons)
	ending := "right"
	if s.compare(subject) != nil {
		ending = "wrong"
	}
	line("ended", []string{ending})
	steps := subject.mirror.allSteps()
	for _, key := range slices.Sorted(maps.Keys(steps)) {
		line(key, steps[key])
	}
	return b.String()
}

func without(words []string, word string) []string {
	return slices.DeleteFunc(words, func(w string) bool { return w == word })
}

// causes are the reasons for which a copy read the whole state, each once. The end
// of a watch counts only if the server reported an error: when a connection
// breaks, it is random whether the watch had a version to resume from.
func causes(lists map[string]int64, told bool) []string {
	var found []string
	for _, cause := range slices.Sorted(maps.Keys(lists)) {
		if told || cause != "watch ended" {
			found = append(found, strings.ReplaceAll(cause, " ", "-"))
		}
	}
	return found
}

// reasons are the kinds of errors of the server, each once. Connection errors are
// left out: whether they occur depends on which request was under way.
func (f *failures) reasons() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := map[string]bool{}
	for _, n := range f.notes {
		for reason, fits := range map[string]func(error) bool{
			"expired":      func(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) },
			"forbidden":    apierrors.IsForbidden,
			"unauthorized": apierrors.IsUnauthorized,
			"not-found":    apierrors.IsNotFound,
			"went-back":    func(err error) bool { return errors.Is(err, tarn.ErrRewound) },
			"silent":       func(err error) bool { return errors.Is(err, tarn.ErrSilent) },
		} {
			if fits(n.err) {
				found[reason] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// lineDifference shows the lines that only one of two texts has.
func lineDifference(want, got string) string {
	var b strings.Builder
	wanted, had := strings.Split(want, "\n"), strings.Split(got, "\n")
	for len(wanted) > 0 || len(had) > 0 {
		switch {
		case len(wanted) > 0 && len(had) > 0 && wanted[0] == had[0]:
			fmt.Fprintf(&b, "   %s\n", wanted[0])
			wanted, had = wanted[1:], had[1:]
		case len(had) > 0 && !slices.Contains(wanted, had[0]):
			fmt.Fprintf(&b, " + %s\n", had[0])
			had = had[1:]
		case len(wanted) > 0:
			fmt.Fprintf(&b, " - %s\n", wanted[0])
			wanted = wanted[1:]
		default:
			fmt.Fprintf(&b, " + %s\n", had[0])
			had = had[1:]
		}
	}
	return b.String()
}

// Two servers that differ are found to differ, and in what.
func TestLineDifference(t *testing.T) {
	for _, test := range []struct{ want, got, shown string }{
		{"a\nb", "a\nb", "   a\n   b\n"},
		{"a\nb\nc", "a\nc", "   a\n - b\n   c\n"},
		{"a\nc", "a\nb\nc", "   a\n + b\n   c\n"},
		{"a\nb", "a\nd", "   a\n + d\n - b\n"},
		{"a\nb", "b\na", " - a\n   b\n + a\n"},
	} {
		if shown := lineDifference(test.want, test.got); shown != test.shown {
			t.Errorf("%q and %q differ so:\n%s, want\n%s", test.want, test.got, shown, test.shown)
		}
	}
}
