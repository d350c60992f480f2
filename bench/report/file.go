package report

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// File is what a run leaves for others to compute with: every round of every
// entry, and what it was measured on.
type File struct {
	Machine  Machine
	Settings Settings
	Races    []*Race
	// Scenarios are the medians of those that have a column per contender.
	Scenarios []Row `json:",omitempty"`
}

// Settings are the settings of the run.
type Settings struct {
	// Data says where the pods are from.
	Data   string
	Rounds int
	Gzip   bool
	// Environment is that of every contender's process.
	Environment []string
}

// Save writes the results, their table and their plots into a folder.
func (f *File) Save(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("keep the results: %w", err)
	}
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fmt.Errorf("keep the results: %w", err)
	}
	files := Plots(f.Races)
	files["results.json"] = append(text, '\n')
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil {
			return fmt.Errorf("keep the results: %w", err)
		}
	}
	return nil
}
