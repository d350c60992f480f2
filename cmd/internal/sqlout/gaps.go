package sqlout

import "github.com/tarnproject/tarn/sqlite"

// Gaps are the tables that an answer was read from and that lacked something.
type Gaps struct {
	// Unwritten have no state on disk yet: they seem to be empty.
	Unwritten []string
	// Incomplete have a state, but not all of its objects.
	Incomplete []string
}

// GapsOf sorts out the tables that a statement read.
func GapsOf(read []sqlite.TableState) (g Gaps) {
	for _, table := range read {
		switch {
		case !table.Synced:
			g.Unwritten = append(g.Unwritten, table.Name)
		case !table.Complete:
			g.Incomplete = append(g.Incomplete, table.Name)
		}
	}
	return g
}
