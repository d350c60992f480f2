package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tarnproject/tarn/bench/report"
)

// repository is the root, from this package's folder.
const repository = ".."

func loadRecorded(t *testing.T) *report.File {
	t.Helper()
	f, err := report.Load(filepath.Join(repository, recorded))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Every figure in the documents is that of the recorded run, and every plot is
// drawn from it.
func TestDocumentsShowTheRecordedRun(t *testing.T) {
	f := loadRecorded(t)
	texts, err := renderDocs(repository, f)
	if err != nil {
		t.Fatal(err)
	}
	files, err := f.Files()
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		texts[filepath.Join(recorded, name)] = content
	}
	for name, want := range texts {
		got, err := os.ReadFile(filepath.Join(repository, name))
		if err != nil {
			t.Error(err)
		} else if string(got) != string(want) {
			t.Errorf("%s does not show the recorded run; write it again with: make bench BENCH='-docs .. -render'", name)
		}
	}
	present, err := os.ReadDir(filepath.Join(repository, recorded))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range present {
		if _, ok := files[e.Name()]; !ok {
			t.Errorf("%s/%s is not of the recorded run", recorded, e.Name())
		}
	}
}

// What the README claims in words agrees with the recorded run.
func TestReadmeClaims(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repository, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, claim := range []string{"in a quarter of the memory and CPU of client-go's informers", "Tarn decodes, and takes a quarter"} {
		if !strings.Contains(string(text), claim) {
			t.Errorf("the README does not say %q any more; this test is to check what it says instead", claim)
		}
	}
	r, ok := loadRecorded(t).Race("protobuf")
	if !ok {
		t.Fatal("the recorded run has no race protobuf")
	}
	const quarter = 0.32 // CPU differs by up to a quarter between rounds
	for _, entry := range []string{"tarn kube", "tarn informers"} {
		for _, measure := range []string{heapPerObject, peakMemory, cpuPerObject, cpuPerUpdate} {
			if ratio, ok := r.Ratio(entry, "client-go", measure); !ok || ratio > quarter {
				t.Errorf("%s: %s is %.2f of client-go's, which is not a quarter", entry, measure, ratio)
			}
		}
	}
}

// copyDocuments makes a root with the documents alone.
func copyDocuments(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	for _, name := range documents {
		text, err := os.ReadFile(filepath.Join(repository, name))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// A run that lacks a figure changes no document: half of the figures would be of
// another run.
func TestAnIncompleteRunIsNotShown(t *testing.T) {
	root, f := copyDocuments(t), loadRecorded(t)
	f.Settings.Note = ""
	f.Scenarios = slices.DeleteFunc(f.Scenarios, func(r report.Row) bool { return r.Scenario == "stalled" })
	f.Races = slices.DeleteFunc(f.Races, func(r *report.Race) bool { return r.Name == "store-heap" })
	err := writeDocs(root, f)
	if err == nil || !strings.Contains(err.Error(), "stalled, client-go, heap growth") || !strings.Contains(err.Error(), "store-heap, client-go, heap per object") {
		t.Errorf("error %v, want it to name the figures that are missing", err)
	}
	if _, err := os.Stat(filepath.Join(root, recorded)); err == nil {
		t.Error("the incomplete results were written")
	}
}

func TestRenderNeedsNoRun(t *testing.T) {
	root, f := copyDocuments(t), loadRecorded(t)
	f.Settings.Versions[clientGo] = "v9.9.9"
	if err := f.Save(filepath.Join(root, recorded)); err != nil {
		t.Fatal(err)
	}
	stale := filepath.Join(root, recorded, "heap-stale.svg")
	if err := os.WriteFile(stale, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), []string{"-docs", root, "-render"}, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, name := range documents {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil || !strings.Contains(string(text), "client-go v9.9.9") {
			t.Errorf("%s does not show the recorded version of client-go (%v)", name, err)
		}
	}
	if _, err := os.Stat(stale); err == nil {
		t.Error("a plot of an earlier run is still there")
	}
}
