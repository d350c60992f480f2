package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// results are what became of each test, by package and name: pass, fail or skip.
type results map[test]string

// test names a test, or a spec of a Ginkgo suite. A package that does not end as its
// tests do, since it does not compile or crashes, has a result without a name.
type test struct{ pack, name string }

func (t test) String() string { return strings.TrimSpace(t.pack + " " + t.name) }

func compareTests(a, b test) int {
	return strings.Compare(a.String(), b.String())
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// event is a line of go test -json; go doc test2json describes it.
type event struct {
	Action, Package, Test, Output string
}

// maxLine is the longest line of output that is read.
const maxLine = 64 << 20

// parse reads the output of go test -json, and says which of the tests are suites of
// Ginkgo. The path of the module is cut from the names of packages.
func parse(module string, out []byte) (all results, suites []test, err error) {
	all = results{}
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, maxLine)
	begun := map[test]bool{}
	failed := map[string]bool{}
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue // the go command itself
		}
		t := test{strings.TrimPrefix(strings.TrimPrefix(e.Package, module), "/"), e.Test}
		switch e.Action {
		case "run":
			begun[t] = true
		case "output":
			if strings.HasPrefix(e.Output, "Running Suite: ") {
				suites = append(suites, t)
			}
		case "pass", "fail", "skip":
			switch {
			case e.Test != "":
				delete(begun, t)
				all[t] = e.Action
				failed[t.pack] = failed[t.pack] || e.Action == "fail"
			case e.Action == "fail" && !failed[t.pack]:
				all[t] = "fail" // it does not compile, or crashed
			}
		}
	}
	for t := range begun { // a crash or the end of its time ended the process meanwhile
		all[t] = "fail"
	}
	return all, suites, lines.Err()
}

// specReport is the file that a Ginkgo suite writes, in the directory of its package.
const specReport = "peers-specs.json"

// takeSpecs replaces the one test that a Ginkgo suite is by its specs, and removes the
// reports, so that the next run does not find them.
func takeSpecs(dir string, suites []test, all results) error {
	reported := map[string]bool{}
	err := filepath.WalkDir(dir, func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != specReport {
			return err
		}
		content, err := os.ReadFile(at)
		if err != nil {
			return err
		}
		pack, err := filepath.Rel(dir, filepath.Dir(at))
		if err != nil {
			return err
		}
		if err := addSpecs(filepath.ToSlash(pack), content, all); err != nil {
			return err
		}
		reported[filepath.ToSlash(pack)] = true
		return os.Remove(at)
	})
	for _, suite := range suites {
		if reported[suite.pack] { // it did not crash
			delete(all, suite)
		}
	}
	return err
}

// addSpecs reads the report of a suite. Specs of the same name fail if one of them does.
func addSpecs(pack string, content []byte, all results) error {
	var suites []struct {
		SpecReports []struct {
			ContainerHierarchyTexts           []string
			LeafNodeType, LeafNodeText, State string
		}
	}
	if err := json.Unmarshal(content, &suites); err != nil {
		return errors.Join(errors.New("the report of the specs of "+pack+" cannot be read"), err)
	}
	for _, suite := range suites {
		for _, s := range suite.SpecReports {
			state := "fail"
			switch s.State {
			case "passed":
				state = "pass"
			case "skipped", "pending":
				state = "skip"
			}
			if s.LeafNodeType != "It" {
				if state != "fail" {
					continue
				}
				s.LeafNodeText = s.LeafNodeType + " " + s.LeafNodeText // what runs before or after all specs
			}
			t := test{pack, strings.Join(append(s.ContainerHierarchyTexts, s.LeafNodeText), " ")}
			if all[t] != "fail" {
				all[t] = state
			}
		}
	}
	return nil
}

// count returns how many tests there are, and how many of them failed or were skipped.
func (r results) count() (tests, failed, skipped int) {
	for _, state := range r {
		switch state {
		case "fail":
			failed++
		case "skip":
			skipped++
		}
	}
	return len(r), failed, skipped
}
