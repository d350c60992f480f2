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

// encodePositions is what the file has of positions.
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

// markIncomplete notes that something is missing, nobody knows of which section.
func (s *state) markIncomplete() {
	s.unsound = true
	positions, err := decodePositions(s.positions)
	if err != nil {
		return // whoever loads it finds that out too
	}
	for i := range positions {
		positions[i].Complete = false
	}
	s.positions = encodePositions(positions)
}

// complete says whether no section lacks anything.
func complete(all []tarn.Position) bool {
	return !slices.ContainsFunc(all, func(p tarn.Position) bool { return !p.Complete })
}
