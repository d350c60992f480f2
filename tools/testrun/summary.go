package main

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"
)

// shownTests is how many tests are named for a reason.
const shownTests = 3

// slow is how long a test may take without being named at the end.
const slow = 5 * time.Second

// slowTest is a test that took longer than that.
type slowTest struct {
	pack, test string
	took       time.Duration
}

// skip is a test that was not run.
type skip struct{ pack, test, reason string }

// summary is printed at the end of all runs.
type summary struct {
	passed, empty int
	failed        []string
	slow          []slowTest
	skipped       []skip
}

func (s *summary) count(action string) {
	switch action {
	case "pass":
		s.passed++
	case "skip":
		s.empty++
	}
}

// print says which tests are slow, so that they are seen before all of them together take
// too long, and what was not tested. Skips with the same last words have one reason: what
// comes before them names the case.
func (s *summary) print(out io.Writer, notes []string) {
	fmt.Fprintf(out, "\n%d packages passed, %d failed, %d have no tests\n", s.passed, len(s.failed), s.empty)
	for _, name := range s.failed {
		fmt.Fprintln(out, "  FAILED", name)
	}
	if len(s.slow) > 0 {
		fmt.Fprintf(out, "Tests that took longer than %v:\n", slow)
		slices.SortFunc(s.slow, func(a, b slowTest) int { return cmp.Compare(b.took, a.took) })
		for _, one := range s.slow {
			fmt.Fprintf(out, "  %.1fs %s.%s\n", one.took.Seconds(), path.Base(one.pack), one.test)
		}
	}
	if len(s.skipped) == 0 && len(notes) == 0 {
		fmt.Fprintln(out, "No test was skipped.")
		return
	}
	fmt.Fprintln(out, "Not tested:")
	for _, note := range notes {
		fmt.Fprintln(out, "  "+note)
	}
	var order []string
	groups := map[string][]skip{}
	for _, one := range s.skipped {
		key := one.reason[strings.LastIndex(one.reason, ": ")+1:]
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], one)
	}
	for _, key := range order {
		group := groups[key]
		var names []string
		for i, one := range group {
			if i == shownTests {
				names = append(names, fmt.Sprintf("%d more", len(group)-i))
				break
			}
			names = append(names, path.Base(one.pack)+"."+one.test)
		}
		fmt.Fprintf(out, "  %s (%s)\n", group[0].reason, strings.Join(names, ", "))
	}
}
