package main

import (
	"strings"
	"testing"
	"time"
)

func TestChoose(t *testing.T) {
	if got := choose(minors, ""); len(got) != len(minors) {
		t.Errorf("without a choice there are %d", len(got))
	}
	if got := choose(minors, "0.36"); len(got) != 1 || !strings.HasPrefix(got[0].clientGo, "v0.36.") {
		t.Errorf("0.36 is %v", got)
	}
	if got := choose(minors, "0.3"); len(got) != 0 {
		t.Errorf("0.3 is %v", got)
	}
}

func TestCount(t *testing.T) {
	passed, failed := count([]byte(`{"Action":"pass","Test":"TestA"}
{"Action":"pass","Test":"TestA/part"}
{"Action":"fail","Test":"TestB"}
{"Action":"pass","Package":"x"}
no JSON
`))
	if passed != 1 || strings.Join(failed, " ") != "TestB" {
		t.Errorf("%d passed, %q failed", passed, failed)
	}
}

func TestFirstError(t *testing.T) {
	for out, want := range map[string]string{
		"# pkg\nx.go:1:2: undefined: y\nmore": "x.go:1:2: undefined: y",
		`{"Action":"build-output","Output":"# pkg\n"}` + "\n" + `{"Action":"build-output","Output":"x.go:3: no\n"}`: "x.go:3: no",
		"": "no message; see the log with -keep",
	} {
		if got := firstError([]byte(out)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// The expectations of a minor name existing test sets.
func TestMinorsNameParts(t *testing.T) {
	known := map[string]bool{}
	for _, p := range testSets {
		known[p.name] = true
	}
	for _, m := range minors {
		for name := range m.missing {
			if !known[name] || m.untested[name] != "" {
				t.Errorf("%s: %q is not a test set, or is named twice", m.clientGo, name)
			}
		}
		for name := range m.untested {
			if !known[name] {
				t.Errorf("%s: %q is not a test set", m.clientGo, name)
			}
		}
	}
}

func TestTable(t *testing.T) {
	cells := map[string]cell{"kube": {text: "passes, 3 tests"}, "cache": {text: "passes, 1 tests"}, "informers": {text: "x"}, "ctrlcache": {text: "does not compile"}}
	got := table([]column{{minor: minors[1], cells: cells, took: 90 * time.Second}})
	for _, want := range []string{"| | client-go v0.36.", "| `kube` | passes, 3 tests |", "| took | 1m30s |", "- `ctrlcache` with client-go v0.36.6: controller-runtime has"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}
