package sqlite

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tarnproject/tarn"
)

// writtenPosition is a [tarn.Position] in the file.
type writtenPosition struct {
	Section  string       `json:"section,omitempty"`
	Epoch    string       `json:"epoch,omitempty"`
	Version  tarn.Version `json:"version"`
	Complete bool         `json:"complete"`
}

// encodePositions returns positions in their stored form.
func encodePositions(all []tarn.Position) string {
	written := make([]writtenPosition, len(all))
	for i, p := range all {
		written[i] = writtenPosition(p)
	}
	text, _ := json.Marshal(written) // text and booleans cannot fail
	return string(text)
}

func decodePositions(text string) ([]tarn.Position, error) {
	if text == "" {
		return nil, nil
	}
	var written []writtenPosition
	if err := json.Unmarshal([]byte(text), &written); err != nil {
		return nil, fmt.Errorf("%w: its positions cannot be read: %w", errBadRow, err)
	}
	all := make([]tarn.Position, len(written))
	for i, p := range written {
		all[i] = tarn.Position(p)
	}
	return all, nil
}

// markIncomplete marks all sections, because it is unknown which one lacks something.
func (s *state) markIncomplete() {
	s.incomplete = true
	positions, err := decodePositions(s.positions)
	if err != nil {
		return // the next load fails in the same way
	}
	for i := range positions {
		positions[i].Complete = false
	}
	s.positions = encodePositions(positions)
}

// complete reports whether all sections are complete.
func complete(all []tarn.Position) bool {
	return !slices.ContainsFunc(all, func(p tarn.Position) bool { return !p.Complete })
}
