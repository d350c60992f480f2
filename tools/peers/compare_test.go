package main

import (
	"strings"
	"testing"
)

func TestDifferences(t *testing.T) {
	stock := results{{"a", "TestA"}: "pass", {"a", "TestA/x"}: "pass", {"a", "TestA/y"}: "pass", {"a", "TestB"}: "fail", {"b", "TestC"}: "pass", {"b", "TestD"}: "pass", {"b", "TestD/z"}: "pass", {"c", "TestE"}: "pass"}
	swapped := results{{"a", "TestA"}: "fail", {"a", "TestA/x"}: "pass", {"a", "TestA/y"}: "fail", {"a", "TestB"}: "fail", {"b", "TestD"}: "fail", {"b", "TestD/z"}: "pass", {"c", ""}: "fail"}
	var got []string
	for _, d := range differences(stock, swapped) {
		got = append(got, d.String())
	}
	want := `a TestA/y: pass with theirs, fail with ours
b TestC: pass with theirs, not there with ours
b TestD: pass with theirs, fail with ours
c: not there with theirs, fail with ours`
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

func TestJudge(t *testing.T) {
	differs := difference{test: test{"a", "TestA"}, stock: "pass", swapped: "fail", runs: 3, swappedFailed: 1}
	unsteady := difference{test: test{"a", "TestB"}, stock: "pass", swapped: "fail", runs: 3}
	right := []known{{"imports", "a TestA", "it counts events"}, {"other", "a TestC", "no matter"}}
	for name, c := range map[string]struct {
		found    []difference
		expected []known
		text     string
		fine     bool
	}{
		"nothing":                           {nil, nil, "", true},
		"a difference":                      {[]difference{differs}, nil, "  DIFFERS: a TestA: pass with theirs, fail with ours; of 3 more runs 0 failed with theirs and 1 with ours\n", false},
		"one that does not happen again":    {[]difference{unsteady}, nil, "  unsteady: a TestB: pass with theirs, fail with ours; of 3 more runs 0 failed with theirs and 0 with ours\n", true},
		"a known one":                       {[]difference{differs}, right, "  known: " + differs.String() + ": it counts events\n", true},
		"a known one that is there no more": {nil, right, "  NO LONGER: a TestA does not differ any more; remove it from tools/peers/projects.go\n", false},
	} {
		if text, fine := judge("imports", c.found, c.expected); text != c.text || fine != c.fine {
			t.Errorf("%s: %t\n%s", name, fine, text)
		}
	}
}

func TestFocus(t *testing.T) {
	if got := focus("TestA/a_part", false); got != "^TestA$/^a_part$" {
		t.Errorf("a test: %s", got)
	}
	if got := focus("Cache reads (twice)", true); got != `Cache reads \(twice\)$` {
		t.Errorf("a spec: %s", got)
	}
}
