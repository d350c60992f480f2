package tarn

import (
	"cmp"
	"slices"
)

// A Position says how far one section of a copy has come. It is written together with
// the content that it is of, so that neither runs ahead of the other.
type Position struct {
	// Section is the name of one of several; empty if the copy has only one.
	Section string
	// Epoch tells versions apart that cannot be compared: it is another one after the
	// source went back in time, or turned out to be another source. It is empty while
	// neither has happened.
	Epoch   string
	Version Version
	// Complete says that the content is all that the source has said. It is not while an
	// object could not be taken, or an event could not be read. Health tells of that; but
	// whoever goes on from this version later would never be told again, and so reads the
	// state instead.
	Complete bool
}

// At is the position of a copy that has one section, lacks nothing, and has come to v.
func At(v Version) Position { return Position{Version: v, Complete: true} }

// Positions are those of all sections, as a store keeps them. The zero value is that of
// an empty store. It is not safe for use by several goroutines.
//
// Why not a map: nearly every copy has one section, and then this allocates nothing.
type Positions struct {
	only Position
	// more has all, by section, if there are several.
	more []Position
}

// Reset leaves one position.
func (p *Positions) Reset(at Position) { p.only, p.more = at, nil }

// Move sets the position of one section. One that has nothing but a section takes that
// out: there is no content of it any more.
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

// Clone returns positions that change by themselves.
func (p *Positions) Clone() Positions { return Positions{p.only, slices.Clone(p.more)} }

// has says whether there is a position of a section.
func (p *Positions) has(section string) bool {
	if p.more == nil {
		return p.only != Position{} && p.only.Section == section
	}
	return slices.ContainsFunc(p.more, func(x Position) bool { return x.Section == section })
}

// All returns the positions, by section.
func (p *Positions) All() []Position {
	switch {
	case p.more != nil:
		return slices.Clone(p.more)
	case p.only != Position{}:
		return []Position{p.only}
	}
	return nil
}

// Oldest is the version that all sections have reached, empty while that cannot be told.
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
