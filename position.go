package tarn

import (
	"cmp"
	"slices"
)

// A Position is the version that one section of a copy has reached. A store writes it
// together with the content, so that neither is ahead of the other.
type Position struct {
	// Section is the name of the section; empty if the copy has only one.
	Section string
	// Epoch changes when the source goes back in time, or is replaced by another source.
	// Versions of different epochs cannot be compared. It is empty before the first such
	// change.
	Epoch   string
	Version Version
	// Complete is false while an object could not be taken, or an event could not be
	// read. A watch from this version would not send that again, so a copy that restarts
	// here reads the whole state instead.
	Complete bool
}

// At is the position of a complete copy with one section at v.
func At(v Version) Position { return Position{Version: v, Complete: true} }

// Positions holds the position of each section, as a store keeps them. The zero value is
// that of an empty store. It is not safe for use by several goroutines.
//
// Why not a map: nearly every copy has one section, and then this allocates nothing.
type Positions struct {
	only Position
	// more holds all positions, sorted by section, if there are several; else it is nil.
	more []Position
}

// Reset replaces all positions by one.
func (p *Positions) Reset(at Position) { p.only, p.more = at, nil }

// Move sets the position of one section. A position with only a section name removes
// that section.
func (p *Positions) Move(at Position) {
	if p.more == nil {
		if p.only == (Position{}) || p.only.Section == at.Section {
			p.only = at
			if at == (Position{Section: at.Section}) {
				p.only = Position{}
			}
			return
		}
		p.more = []Position{p.only}
	}
	i, known := slices.BinarySearchFunc(p.more, at.Section, func(x Position, section string) int { return cmp.Compare(x.Section, section) })
	switch {
	case at == Position{Section: at.Section}:
		if known {
			p.more = slices.Delete(p.more, i, i+1)
		}
		if len(p.more) == 0 {
			*p = Positions{}
		}
	case known:
		p.more[i] = at
	default:
		p.more = slices.Insert(p.more, i, at)
	}
}

// Clone returns an independent copy.
func (p *Positions) Clone() Positions { return Positions{p.only, slices.Clone(p.more)} }

// has says whether there is a position of a section.
func (p *Positions) has(section string) bool {
	if p.more == nil {
		return p.only != Position{} && p.only.Section == section
	}
	return slices.ContainsFunc(p.more, func(x Position) bool { return x.Section == section })
}

// of returns the position of a section, if there is one.
func (p *Positions) of(section string) []Position {
	return slices.DeleteFunc(p.All(), func(x Position) bool { return x.Section != section })
}

// All returns the positions, sorted by section.
func (p *Positions) All() []Position {
	switch {
	case p.more != nil:
		return slices.Clone(p.more)
	case p.only != Position{}:
		return []Position{p.only}
	}
	return nil
}

// Oldest is the version that all sections have reached, empty if versions cannot be
// compared.
func (p *Positions) Oldest() Version {
	if p.more == nil {
		return p.only.Version
	}
	return oldest(p.more)
}

// oldest is the version that all positions have reached.
func oldest(all []Position) Version {
	joint := all[0].Version
	for _, p := range all[1:] {
		if c, ok := p.Version.Compare(joint); !ok {
			return ""
		} else if c < 0 {
			joint = p.Version
		}
	}
	return joint
}
