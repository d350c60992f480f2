package main

import (
	"strings"
	"testing"
)

func TestChoose(t *testing.T) {
	all := []project{{name: "a", ci: []string{"imports"}}, {name: "b"}, {name: "c", ci: []string{"imports"}}}
	for _, c := range []struct {
		only string
		ci   bool
		want string
	}{{"", false, "a b c"}, {"", true, "a c"}, {"c,b", false, "b c"}, {"b", true, ""}, {"x", false, ""}} {
		chosen, err := choose(all, c.only, c.ci)
		var names []string
		for _, p := range chosen {
			names = append(names, p.name)
		}
		if got := strings.Join(names, " "); got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%q of %t: %q, %v", c.only, c.ci, got, err)
		}
	}
}

// A known difference names a swap of its project, has a reason, and is not one of many.
func TestProjectsAreWhole(t *testing.T) {
	names := map[string]bool{}
	for _, p := range projects {
		if names[p.name] || p.name == "" || p.path == "" || !strings.HasPrefix(p.version, "v") || len(p.packages) == 0 || len(p.swaps) == 0 {
			t.Errorf("%s is not whole, or there twice", p)
		}
		names[p.name] = true
		swaps := map[string]bool{}
		for _, s := range p.swaps {
			swaps[s.name] = true
		}
		for _, name := range p.ci {
			if !swaps[name] {
				t.Errorf("%s: CI is to run a swap %q that is not there", p.name, name)
			}
		}
		for _, k := range p.known {
			if !swaps[k.swap] || k.test == "" || k.why == "" {
				t.Errorf("%s: %+v", p.name, k)
			}
		}
		if len(p.known) > 3 {
			t.Errorf("%s: %d known differences are too many to call it a drop-in", p.name, len(p.known))
		}
	}
}
