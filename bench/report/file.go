package report

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// File holds everything that one run measured: every round of every entry, and
// the machine and settings it was measured with.
type File struct {
	Machine  Machine
	Settings Settings
	Races    []*Race
	// Scenarios are the medians of those that have a column per contender.
	Scenarios []Row `json:",omitempty"`
}

// Settings are the settings of the run.
type Settings struct {
	// Began and Took say when the run began and how long it took.
	Began time.Time
	Took  time.Duration
	// Data says where the pods are from.
	Data string
	// Rounds is how often everything ran. Large collections ran fewer times.
	Rounds int
	// Updates is how many updates each contender of a race was sent.
	Updates int
	Gzip    bool
	// Environment is that of every contender's process.
	Environment []string
	// Versions has the version of each peer, by module.
	Versions map[string]string
	// Note is what a reader should know about the run.
	Note string `json:",omitempty"`
}

// ResultsName is the file in which Save keeps the figures.
const ResultsName = "results.json"

// Files are the results and their plots, by file name.
func (f *File) Files() (map[string][]byte, error) {
	text, err := json.MarshalIndent(f, "", " ")
	if err != nil {
		return nil, fmt.Errorf("encode the results: %w", err)
	}
	files := Plots(f.Races)
	files[ResultsName] = append(text, '\n')
	return files, nil
}

// Save writes the results and their plots into a folder.
func (f *File) Save(folder string) error {
	files, err := f.Files()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("save the results: %w", err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil {
			return fmt.Errorf("save the results: %w", err)
		}
	}
	return nil
}

// Load reads results that Save wrote.
func Load(folder string) (*File, error) {
	text, err := os.ReadFile(filepath.Join(folder, ResultsName))
	if err != nil {
		return nil, fmt.Errorf("read recorded results: %w", err)
	}
	f := &File{}
	if err := json.Unmarshal(text, f); err != nil {
		return nil, fmt.Errorf("read recorded results %s: %w", filepath.Join(folder, ResultsName), err)
	}
	return f, nil
}

// Race finds the race of this name that was held with the data's own number of
// objects or, if there is none, the largest.
func (f *File) Race(name string) (*Race, bool) {
	var found *Race
	for _, r := range f.Races {
		if r.Name == name && (found == nil || r.DataSize || !found.DataSize && r.Pods > found.Pods) {
			found = r
		}
	}
	return found, found != nil
}

// Sizes are the races of this name, ordered by the number of objects.
func (f *File) Sizes(name string) []*Race {
	for _, group := range bySize(f.Races) {
		if group[0].Name == name {
			return group
		}
	}
	return nil
}

// Scenario finds a scenario's row.
func (f *File) Scenario(name, measure string) (Row, bool) {
	for _, r := range f.Scenarios {
		if r.Scenario == name && r.Measure == measure {
			return r, true
		}
	}
	return Row{}, false
}
