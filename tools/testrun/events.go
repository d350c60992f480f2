package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// event is a line of go test -json; go doc test2json describes it.
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64 // seconds, at the end of a test
}

// maxLine is the longest line of output that is read.
const maxLine = 64 << 20

// reader makes lines for people of events.
type reader struct {
	out *console
	all *summary
	// output is what packages have printed whose end has not come, in order.
	output map[string][]event
	done   int
	begun  int
}

// read prints the events of a run, and adds what was skipped to the summary.
func read(in io.Reader, out *console, all *summary) error {
	r := &reader{out: out, all: all, output: map[string][]event{}}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil || e.Action == "" {
			fmt.Fprintln(out, lines.Text()) // the go command itself, or a program that it runs
			continue
		}
		r.take(e)
	}
	return lines.Err()
}

func (r *reader) take(e event) {
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "start":
		r.begun++
		r.progress(e.Package)
	case "output":
		r.output[e.Package] = append(r.output[e.Package], e)
	case "pass", "fail", "skip":
		if e.Test != "" {
			r.test(e)
			return
		}
		r.pack(e)
		r.done++
		r.progress("")
	}
}

func (r *reader) progress(name string) {
	text := fmt.Sprintf("testing: %d packages done, %d under way", r.done, r.begun-r.done)
	if name != "" {
		text += ", the last one " + name
	}
	r.out.doing(text)
}

// test is the end of a test. What a good one printed is dropped.
func (r *reader) test(e event) {
	if e.Action == "skip" {
		r.all.skipped = append(r.all.skipped, skip{e.Package, e.Test, r.reason(e)})
	}
	if took := time.Duration(e.Elapsed * float64(time.Second)); took > slow && !strings.Contains(e.Test, "/") {
		r.all.slow = append(r.all.slow, slowTest{e.Package, e.Test, took})
	}
	if e.Action != "fail" {
		r.output[e.Package] = slices.DeleteFunc(r.output[e.Package], func(o event) bool { return o.Test == e.Test })
	}
}

// reason is what a test said when it was skipped.
func (r *reader) reason(e event) string {
	var said []string
	for _, o := range r.output[e.Package] {
		line := strings.TrimSpace(o.Output)
		if o.Test != e.Test || line == "" || strings.HasPrefix(line, "=== ") || strings.HasPrefix(line, "--- ") {
			continue
		}
		if file, text, ok := strings.Cut(line, ": "); ok && strings.Contains(file, ".go:") {
			line = text
		}
		said = append(said, line)
	}
	if len(said) == 0 {
		return "no reason given"
	}
	return strings.Join(said, " ")
}

// pack is the end of a package. One that failed shows all that its failed tests, and
// those that never ended, have printed.
func (r *reader) pack(e event) {
	r.all.count(e.Action)
	for _, o := range r.output[e.Package] {
		switch line := strings.TrimSuffix(o.Output, "\n"); {
		case e.Action == "fail":
			if !strings.HasPrefix(line, "=== ") {
				fmt.Fprintln(r.out, line)
			}
		case o.Test == "" && isResult(line):
			fmt.Fprintln(r.out, line)
		}
	}
	if e.Action == "fail" {
		r.all.failed = append(r.all.failed, e.Package)
	}
	delete(r.output, e.Package)
}

// isResult recognises the line that go test prints for a package.
func isResult(line string) bool {
	return strings.HasPrefix(line, "ok  \t") || strings.HasPrefix(line, "?   \t")
}
