package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	notes, runs, err := parse([]string{"-note", "no races", "--", "-race", "./...", "--", "-run", "X", "./x"})
	if err != nil || !slices.Equal(notes, []string{"no races"}) || len(runs) != 2 || !slices.Equal(runs[0], []string{"-race", "./..."}) || !slices.Equal(runs[1], []string{"-run", "X", "./x"}) {
		t.Errorf("got %q, %q, %v", notes, runs, err)
	}
	for _, wrong := range [][]string{nil, {"./..."}, {"-note"}, {"-note", "x"}} {
		if _, _, err := parse(wrong); err == nil {
			t.Errorf("%q is understood", wrong)
		}
	}
}

func TestGoArgs(t *testing.T) {
	for _, c := range []struct{ args, want string }{{"-race ./...", "test -json -race ./..."}, {"-C bench ./...", "test -C bench -json ./..."}} {
		if got := strings.Join(goArgs([]string{"test", "-json"}, strings.Fields(c.args)), " "); got != c.want {
			t.Errorf("%s becomes %s, want %s", c.args, got, c.want)
		}
	}
}

func TestCompiled(t *testing.T) {
	args := strings.Fields("-C bench -short -vet=off -timeout=30m -race -gcflags=x=-race=false ./...")
	if got, want := strings.Join(compiled(args), " "), "-C bench -race -gcflags=x=-race=false ./..."; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Events in, what a person reads out.
func TestRead(t *testing.T) {
	const events = `{"Action":"start","Package":"x/good"}
{"Action":"output","Package":"x/good","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"x/good","Test":"TestA","Output":"chatter\n"}
{"Action":"pass","Package":"x/good","Test":"TestA","Elapsed":0.5}
{"Action":"pass","Package":"x/good","Test":"TestLong/one","Elapsed":7.5}
{"Action":"pass","Package":"x/good","Test":"TestLong","Elapsed":7.61}
{"Action":"output","Package":"x/good","Test":"TestPage","Output":"    page_test.go:12: no browser was found: set CHROMIUM\n"}
{"Action":"output","Package":"x/good","Test":"TestPage","Output":"--- SKIP: TestPage (0.00s)\n"}
{"Action":"skip","Package":"x/good","Test":"TestPage"}
{"Action":"output","Package":"x/good","Output":"PASS\n"}
{"Action":"output","Package":"x/good","Output":"ok  \tx/good\t0.1s\n"}
{"Action":"pass","Package":"x/good"}
{"Action":"output","Package":"x/none","Output":"?   \tx/none\t[no test files]\n"}
{"Action":"skip","Package":"x/none"}
{"Action":"start","Package":"x/bad"}
{"Action":"output","Package":"x/bad","Test":"TestB","Output":"    b_test.go:1: got 1, want 2\n"}
{"Action":"output","Package":"x/bad","Test":"TestB","Output":"--- FAIL: TestB (0.00s)\n"}
{"Action":"fail","Package":"x/bad","Test":"TestB"}
{"Action":"output","Package":"x/bad","Test":"TestHangs","Output":"panic: it hangs\n"}
{"Action":"output","Package":"x/bad","Test":"TestFine","Output":"more chatter\n"}
{"Action":"pass","Package":"x/bad","Test":"TestFine"}
{"Action":"output","Package":"x/bad","Test":"TestOther","Output":"    o_test.go:3: no browser: set CHROMIUM\n"}
{"Action":"skip","Package":"x/bad","Test":"TestOther"}
{"Action":"output","Package":"x/bad","Output":"FAIL\tx/bad\t0.1s\n"}
{"Action":"fail","Package":"x/bad"}
{"Action":"build-output","ImportPath":"x/broken","Output":"x.go:1:1: syntax error\n"}
not JSON at all
`
	const want = `ok  	x/good	0.1s
?   	x/none	[no test files]
    b_test.go:1: got 1, want 2
--- FAIL: TestB (0.00s)
panic: it hangs
FAIL	x/bad	0.1s
x.go:1:1: syntax error
not JSON at all

1 packages passed, 1 failed, 1 have no tests
  FAILED x/bad
Tests that took longer than 5s:
  7.6s good.TestLong
Not tested:
  data races: no C compiler
  no browser was found: set CHROMIUM (good.TestPage, bad.TestOther)
`
	var text bytes.Buffer
	out := &console{out: &text, progress: &text}
	var all summary
	if err := read(strings.NewReader(events), out, &all); err != nil {
		t.Fatal(err)
	}
	all.print(out, []string{"data races: no C compiler"})
	if text.String() != want {
		t.Errorf("got\n%s\nwant\n%s", text.String(), want)
	}
}

func TestSummaryOfNothingSkipped(t *testing.T) {
	var text bytes.Buffer
	(&summary{passed: 2}).print(&text, nil)
	if want := "\n2 packages passed, 0 failed, 0 have no tests\nNo test was skipped.\n"; text.String() != want {
		t.Errorf("got %q", text.String())
	}
}

func TestSummaryNamesAFewTests(t *testing.T) {
	var text bytes.Buffer
	s := &summary{}
	for _, name := range []string{"A", "B", "C", "D", "E"} {
		s.skipped = append(s.skipped, skip{"x/p", name, "case " + name + ": no tool"})
	}
	s.print(&text, nil)
	if !strings.Contains(text.String(), "  case A: no tool (p.A, p.B, p.C, 2 more)\n") {
		t.Errorf("got %s", text.String())
	}
}

// Progress is printed when nothing else is, and not otherwise.
func TestProgress(t *testing.T) {
	var text, progress bytes.Buffer
	now := time.Unix(0, 0)
	c := &console{out: &text, progress: &progress, now: func() time.Time { return now }, printed: now}
	w := &compiling{out: c}
	for _, part := range []string{"go: downloading k8s.io/api v0.37.2\nk8s.io/", "api/core/v1\n", "x/y [x/y.test]\n", "# x\n"} {
		if _, err := w.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	if text.String() != "# x\n" {
		t.Errorf("it prints %q", text.String())
	}
	now = now.Add(19 * time.Second)
	c.tick(20 * time.Second)
	if progress.Len() > 0 {
		t.Errorf("after 19 s it says %q", progress.String())
	}
	now = now.Add(time.Second)
	c.tick(20 * time.Second)
	c.tick(20 * time.Second)
	if want := "… compiling: 2 packages, now x/y [x/y.test]\n"; progress.String() != want {
		t.Errorf("after 20 s it says %q", progress.String())
	}
}

// The program itself: the exit code is go test's, over all runs.
func TestExitCode(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":            "module x\n\ngo 1.26\n",
		"main/x.go":         "package main\n\nfunc main() {}\n",
		"good/x_test.go":    "package good\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) { t.Skip(\"no tool\") }\n",
		"bad/x_test.go":     "package bad\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) { t.Error(\"wrong\") }\n",
		"broken/x_test.go":  "package broken\n\nfunc TestX(\n",
		"missing/x_test.go": "package missing\n\nimport _ \"x/nowhere\"\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(dir, "testrun.exe")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, c := range []struct {
		args  string
		code  int
		words []string
	}{
		{"-- ./good", 0, []string{"ok  \tx/good", "no tool (good.TestX)"}},
		{"-- ./bad -- ./good", 1, []string{"x_test.go:5: wrong", "FAILED x/bad", "ok  \tx/good"}},
		{"-- ./broken", 1, []string{"x_test.go:", "FAILED"}},
		{"-- ./missing", 1, []string{"x/nowhere", "FAILED"}},
		{"-- ./main", 0, []string{"x/main", "1 have no tests", "No test was skipped."}},
		{"-- -nonsense", 1, []string{"nonsense"}},
		{"./good", 2, []string{"usage"}},
	} {
		cmd := exec.Command(program, strings.Fields(c.args)...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != c.code {
			t.Errorf("%s: exit code %d, want %d:\n%s", c.args, code, c.code, out)
		}
		for _, word := range c.words {
			if !strings.Contains(string(out), word) {
				t.Errorf("%s: %q is not in\n%s", c.args, word, out)
			}
		}
	}
	// Five folders, go.mod and the program: nothing else was built there.
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) != 7 {
		t.Errorf("it leaves %v, %v", left, err)
	}
}
