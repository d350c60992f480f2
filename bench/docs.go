package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tarnproject/tarn/bench/report"
)

// Where the repository keeps a run, from its root: the documents that show its
// figures, and the folder with all of them.
var documents = []string{"README.md", "docs/benchmarks.md"}

const recorded = "docs/bench"

// unfinished is the folder for the results of a run that cannot be shown.
const unfinished = "results"

// writeDocs writes a run into the documents of the repository at root. All their
// figures are then from that run: unless it measured all of them, it changes
// nothing.
func writeDocs(root string, f *report.File) error {
	texts, err := renderDocs(root, f)
	if err != nil {
		return err
	}
	if err := removePlots(filepath.Join(root, recorded)); err != nil {
		return err
	}
	if err := f.Save(filepath.Join(root, recorded)); err != nil {
		return err
	}
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(root, name), text, 0o644); err != nil {
			return fmt.Errorf("write the figures into %s: %w", name, err)
		}
	}
	return nil
}

// renderDocs returns the documents with the figures of a run.
func renderDocs(root string, f *report.File) (map[string][]byte, error) {
	parts, missing := newPage(f).parts()
	if len(missing) > 0 && f.Settings.Note == "" {
		return nil, fmt.Errorf("the documents show what this run did not measure: %s; run without -run and -only, or explain the gaps to their readers with -note", strings.Join(missing, "; "))
	}
	texts, used := map[string][]byte{}, []string{}
	for _, name := range documents {
		old, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return nil, fmt.Errorf("read a document to write figures into: %w", err)
		}
		text, names, err := report.Fill(old, parts)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		texts[name], used = text, append(used, names...)
	}
	for name := range parts {
		if !slices.Contains(used, name) {
			return nil, fmt.Errorf("no document has a place for the generated part %q", name)
		}
	}
	return texts, nil
}

// removePlots removes those of an earlier run, which may have had other races.
func removePlots(folder string) error {
	old, err := filepath.Glob(filepath.Join(folder, "*.svg"))
	for _, name := range old {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}
