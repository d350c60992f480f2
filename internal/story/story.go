package story

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Story is about a server and a user, with what must be seen of it: words, among
// them lines such as "with:", then sections.
type Story struct {
	Name string
	// Why is the reason for what another implementation does differently.
	Why string
	// With are the settings, such as "watchlist" or "resync=10s".
	With Settings
	// Only are the kinds of client that the story is for, the usual ones if empty;
	// Also are kinds besides the usual ones.
	Only, Also []string
	// Took is how long it may take until the last answer is asked for.
	Took Span
	// Script is the section "server", User the section "user".
	Script *Script
	User   []Action

	words string
	// sections holds the text of each by its name; order is that of the file.
	sections map[string]string
	order    []string
}

// Before is the time of what is done before the client runs.
const Before time.Duration = -1

// Action is something that the user of a client does at a time.
type Action struct {
	At    time.Duration
	Verb  string
	Words []string
}

// Settings are the words of a line of "with:", by name.
type Settings map[string]string

// Has says whether there is such a setting.
func (s Settings) Has(name string) bool {
	_, ok := s[name]
	return ok
}

// Duration gives a setting that is a time.
func (s Settings) Duration(name string, otherwise time.Duration) time.Duration {
	value, ok := s[name]
	if !ok {
		return otherwise
	}
	d, err := time.ParseDuration(value)
	if err != nil {
		panic(fmt.Sprintf("with: %s=%s is no time", name, value))
	}
	return d
}

// Number gives a setting that is a number, 0 if there is none.
func (s Settings) Number(name string) int64 {
	value, ok := s[name]
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("with: %s=%s is no number", name, value))
	}
	return n
}

func parse(name, text string) (*Story, error) {
	s := &Story{Name: name, With: Settings{}, sections: map[string]string{}}
	if err := s.split(text); err != nil {
		return nil, err
	}
	if err := s.parseWords(); err != nil {
		return nil, err
	}
	var err error
	if s.Script, err = ParseScript(s.sections["server"]); err != nil {
		return nil, err
	}
	s.User, err = parseUser(s.sections["user"])
	return s, err
}

// split takes the text apart into words and sections.
func (s *Story) split(text string) error {
	name, part := "", ""
	end := func() {
		if name == "" {
			s.words = part
		} else {
			s.sections[name] = part
			s.order = append(s.order, name)
		}
	}
	for line := range strings.Lines(text) {
		head, opens := strings.CutPrefix(strings.TrimSpace(line), "-- ")
		head, closes := strings.CutSuffix(head, " --")
		if !opens || !closes {
			part += line
			continue
		}
		end()
		name, part = head, ""
		if _, twice := s.sections[name]; twice {
			return fmt.Errorf("two sections %q", name)
		}
	}
	end()
	return nil
}

func (s *Story) format(b *strings.Builder) {
	b.WriteString(s.words)
	for _, name := range s.order {
		fmt.Fprintf(b, "-- %s --\n%s", name, s.sections[name])
	}
}

// Section gives the text of a section, and whether there is one.
func (s *Story) Section(name string) (string, bool) {
	text, ok := s.sections[name]
	return text, ok
}

// Sections gives all sections in the order of the file.
func (s *Story) Sections() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, name := range slices.Clone(s.order) {
			if !yield(name, s.sections[name]) {
				return
			}
		}
	}
}

// Set changes a section; an empty one is left out.
func (s *Story) Set(name, text string) {
	_, there := s.sections[name]
	switch {
	case text == "" && there:
		delete(s.sections, name)
		s.order = slices.DeleteFunc(s.order, func(n string) bool { return n == name })
	case text != "":
		if !there {
			s.order = append(s.order, name)
		}
		s.sections[name] = text
	}
}

func (s *Story) parseWords() error {
	for line := range strings.Lines(s.words) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch value = strings.TrimSpace(value); key {
		case "why":
			s.Why = value
		case "only":
			s.Only = strings.Fields(value)
		case "also":
			s.Also = strings.Fields(value)
		case "with":
			for _, setting := range strings.Fields(value) {
				name, value, _ := strings.Cut(setting, "=")
				s.With[name] = value
			}
		case "took":
			var err error
			if s.Took, err = parseSpan(value); err != nil {
				return err
			}
		}
	}
	return nil
}

func parseUser(text string) ([]Action, error) {
	var all []Action
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		at, err := time.ParseDuration(words[0])
		if words[0] == "before" {
			at, err = Before, nil
		}
		if err != nil || len(words) < 2 {
			return nil, fmt.Errorf("user: %q is not a time and a deed", line)
		}
		all = append(all, Action{At: at, Verb: words[1], Words: words[2:]})
	}
	return all, nil
}
