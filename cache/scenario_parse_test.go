package cache

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A scenario is a story about a server and a user, with what must be seen of it.
// It is a file of testdata/scenarios in the txtar format: first words about it,
// among them lines of "why:", "with:" and "only:", then sections. See the README
// beside the files.
type scenario struct {
	name, path string
	words      string
	why        string
	// with are the settings, such as "watchlist" or "resync=10s".
	with map[string]string
	// only are the kinds of client that it is for, the usual ones if empty; also
	// are those besides the usual ones.
	only, also []string
	// sections holds the text of each by its name; order is that of the file.
	sections map[string]string
	order    []string

	script *script
	user   []action
}

// before is the time of what is done before the client runs.
const before time.Duration = -1

// action is something that the user of a client does at a time.
type action struct {
	at    time.Duration
	verb  string
	words []string
}

func readScenarios(folder string) ([]*scenario, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.txtar"))
	if err != nil {
		return nil, err
	}
	var all []*scenario
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		s := parseArchive(string(data))
		s.path, s.name = path, strings.TrimSuffix(filepath.Base(path), ".txtar")
		if err := s.parse(); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, s)
	}
	return all, nil
}

// parseArchive takes a txtar apart.
func parseArchive(data string) *scenario {
	s := &scenario{sections: map[string]string{}}
	name, text := "", ""
	end := func() {
		if name == "" {
			s.words = text
		} else {
			s.sections[name] = text
			s.order = append(s.order, name)
		}
	}
	for line := range strings.Lines(data) {
		title, opens := strings.CutPrefix(strings.TrimSpace(line), "-- ")
		if title, closes := strings.CutSuffix(title, " --"); opens && closes {
			end()
			name, text = title, ""
			continue
		}
		text += line
	}
	end()
	return s
}

// format is the inverse of parseArchive.
func (s *scenario) format() string {
	var b strings.Builder
	b.WriteString(s.words)
	for _, name := range s.order {
		fmt.Fprintf(&b, "-- %s --\n%s", name, s.sections[name])
	}
	return b.String()
}

// set changes a section; an empty one is left out.
func (s *scenario) set(name, text string) {
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

func (s *scenario) parse() error {
	s.with = map[string]string{}
	for line := range strings.Lines(s.words) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch key {
		case "why":
			s.why = strings.TrimSpace(value)
		case "only":
			s.only = strings.Fields(value)
		case "also":
			s.also = strings.Fields(value)
		case "with":
			for _, setting := range strings.Fields(value) {
				name, value, _ := strings.Cut(setting, "=")
				s.with[name] = value
			}
		}
	}
	var err error
	if s.script, err = parseScript(s.sections["server"]); err != nil {
		return err
	}
	for line := range strings.Lines(s.sections["user"]) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		at, err := time.ParseDuration(words[0])
		if words[0] == "before" {
			at, err = before, nil
		}
		if err != nil || len(words) < 2 {
			return fmt.Errorf("user: %q is not a time and a deed", line)
		}
		s.user = append(s.user, action{at: at, verb: words[1], words: words[2:]})
	}
	return nil
}

// duration gives a setting.
func (s *scenario) duration(name string, otherwise time.Duration) time.Duration {
	if value, ok := s.with[name]; ok {
		d, err := time.ParseDuration(value)
		if err != nil {
			panic(err)
		}
		return d
	}
	return otherwise
}

func (s *scenario) number(name string) int64 {
	n, _ := strconv.ParseInt(s.with[name], 10, 64)
	return n
}

// script is what a server answers, for each kind of request one after the other.
type script struct {
	answers map[string][]*answer
}

// answer is the answer to one request.
type answer struct {
	// times is how often it is given; the last one of its kind may be without
	// end.
	times int
	// attributes are the words before the colon, such as the version of a list.
	attributes []string
	// parts are the objects of a list, the events of a watch.
	parts []string
}

const always = 1 << 30

func parseScript(text string) (*script, error) {
	s := &script{answers: map[string][]*answer{}}
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		head, rest, listed := strings.Cut(strings.TrimSpace(line), ":")
		words := strings.Fields(head)
		if len(words) == 0 {
			continue
		}
		verb := words[0]
		if !slices.Contains([]string{"list", "probe", "watch", "stream"}, verb) {
			return nil, fmt.Errorf("server: %q is not a kind of request", verb)
		}
		a := &answer{times: 1}
		for _, word := range words[1:] {
			if n, repeated := strings.CutPrefix(word, "×"); repeated {
				a.times = always
				if n != "∞" {
					var err error
					if a.times, err = strconv.Atoi(n); err != nil {
						return nil, fmt.Errorf("server: %q", line)
					}
				}
				continue
			}
			a.attributes = append(a.attributes, word)
		}
		if listed && verb == "list" {
			a.parts = strings.Fields(rest)
		} else if listed {
			for part := range strings.SplitSeq(rest, ",") {
				if part = strings.TrimSpace(part); part != "" {
					a.parts = append(a.parts, part)
				}
			}
		}
		s.answers[verb] = append(s.answers[verb], a)
	}
	return s, nil
}

// attribute gives the value of "name=value".
func (a *answer) attribute(name string) (string, bool) {
	for _, word := range a.attributes {
		if value, ok := strings.CutPrefix(word, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

func (a *answer) has(word string) bool { return slices.Contains(a.attributes, word) }

func (a *answer) delay() time.Duration {
	value, ok := a.attribute("delay")
	if !ok {
		return 0
	}
	d, err := time.ParseDuration(value)
	if err != nil {
		panic(err)
	}
	return d
}

// fault gives the words after "error".
func (a *answer) fault() ([]string, bool) {
	i := slices.Index(a.attributes, "error")
	if i < 0 {
		return nil, false
	}
	return a.attributes[i+1:], true
}

// version is the attribute that is a number; "-" stands for none.
func (a *answer) version() string {
	for _, word := range a.attributes {
		if _, err := strconv.Atoi(word); err == nil {
			return word
		}
	}
	return ""
}
