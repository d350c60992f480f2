package tarn_test

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/story"
)

// thing is the object of stories: name@version/uid=text.
type thing struct {
	name, version, uid, text string
}

func (o *thing) String() string {
	s := o.name + "@" + o.version
	if o.uid != "" {
		s += "/" + o.uid
	}
	if o.text != "" {
		s += "=" + o.text
	}
	return s
}

var errUnreadable = errors.New("cannot be read")

// parseObject makes an object of its text, or says which one cannot be read, as a
// source does that can read "bad:a@7" but for its name and version.
func parseObject(text string) (*thing, *tarn.BadObject) {
	if text == "nil" {
		return nil, nil
	}
	kind, rest, some := strings.Cut(text, ":")
	if !some {
		kind, rest = "", text
	}
	o := parseThing(rest)
	switch kind {
	case "":
		return o, nil
	case "nameless":
		o.name = ""
		return o, nil
	case "bad":
		return nil, &tarn.BadObject{Key: tarn.Key(o.name), Version: tarn.Version(o.version), Err: errUnreadable}
	}
	panic("no object: " + text)
}

func parseThing(s string) *thing {
	o := &thing{}
	s, o.text, _ = strings.Cut(s, "=")
	s, o.uid, _ = strings.Cut(s, "/")
	o.name, o.version, _ = strings.Cut(s, "@")
	return o
}

// describeChange is the text of a change in the section "handler".
func describeChange(c tarn.Change[*thing]) string {
	switch c.Type {
	case tarn.Add:
		if c.Initial {
			return "add " + c.Object.String() + " (initial)"
		}
		return "add " + c.Object.String()
	case tarn.Update:
		return "update " + c.Old.String() + " -> " + c.Object.String()
	case tarn.Sync:
		return "sync " + c.Object.String()
	default:
		if c.Missed {
			return "delete " + c.Object.String() + " (final state unknown)"
		}
		return "delete " + c.Object.String()
	}
}

// describeError names an error by what it is to the reflector, else by the first
// line of the text of its cause.
func describeError(err error) string {
	if name := story.ErrorName(err); name != "" {
		return name
	}
	if reason := tarn.ReasonOf(err); reason != tarn.ReasonUnknown {
		return reason.String()
	}
	last := err
	for errors.Unwrap(last) != nil {
		last = errors.Unwrap(last)
	}
	text, _, _ := strings.Cut(last.Error(), "\n")
	return text
}

// transcript collects what is seen, by section.
type transcript struct {
	mu    sync.Mutex
	lines map[string][]string
}

func (s *transcript) add(section, line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lines == nil {
		s.lines = map[string][]string{}
	}
	s.lines[section] = append(s.lines[section], line)
}

// set adds a text of whole lines.
func (s *transcript) set(section, text string) {
	for line := range strings.Lines(text) {
		s.add(section, strings.TrimSuffix(line, "\n"))
	}
}

// sections gives the text of each section.
func (s *transcript) sections() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]string{}
	for section, lines := range s.lines {
		if section == "handler" {
			sortSyncs(lines)
		}
		all[section] = strings.Join(lines, "\n") + "\n"
	}
	return all
}

// sortSyncs sorts what comes in no order: the objects that are offered again
// together.
func sortSyncs(lines []string) {
	for i := range lines {
		end := i
		for end < len(lines) && strings.HasPrefix(lines[end], "sync ") {
			end++
		}
		slices.Sort(lines[i:end])
	}
}
