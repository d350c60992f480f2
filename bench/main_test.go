package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

func TestRunPrintsATableEvenIfSomeFail(t *testing.T) {
	var out bytes.Buffer
	err := run(t.Context(), []string{"-run", "^self-half$", "-count", "2"}, &out, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "self-half, tarn: exit status 1") || strings.Contains(err.Error(), "unshared") {
		t.Errorf("error %v, want that of the contender that failed, and of no other", err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 5 || !strings.HasPrefix(lines[0], "Measured on ") || !strings.HasPrefix(lines[2], "| scenario ") || !strings.HasPrefix(lines[4], "| self-half | figure ") {
		t.Errorf("output:\n%s\nwant the machine, a head, a rule and one row for self-half", out.String())
	}
}

// A scenario need not have all contenders: those that it lacks are not asked to run.
func TestRunAsksOnlyContendersOfTheScenario(t *testing.T) {
	if err := run(t.Context(), []string{"-run", "^self-pid$", "-count", "1"}, io.Discard, io.Discard); err != nil {
		t.Error(err)
	}
}

func TestRunRefusesWhatItCannotDo(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"-run", "no-such"}, `no scenario, trial or race matches -run "no-such"`},
		{[]string{"-run", "("}, "-run:"},
		{[]string{"-only", "("}, "-only:"},
		{[]string{"-count", "many"}, "invalid value"},
		{[]string{"-n", "1,x"}, `-n: "x" is not a number`},
		{[]string{"-render"}, "name the root of their repository with -docs"},
	} {
		err := run(t.Context(), test.args, io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: error %v, want %q in it", test.args, err, test.want)
		}
	}
}

func TestListShowsEveryScenario(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-list", "-run", "fanout|protobuf"}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"fanout-1\n    200,000 updates", "fanout-10\n", "fanout-100\n", "protobuf\n    Pods in protobuf.\n        client-go "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("list:\n%swant %q in it", out.String(), want)
		}
	}
}
