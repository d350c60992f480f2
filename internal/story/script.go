package story

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Script is what a server answers, for each kind of request one after the other.
//
// Each kind has its own line of answers, because different clients ask in a
// different order. In which order they did is in the section "requests".
type Script struct {
	answers map[string][]*Answer
}

// Answer is the answer to one request.
type Answer struct {
	// Parts are the objects of a list, the events of a watch.
	Parts []string
	// times is how often it is given; the last one of its kind may be without
	// end.
	times int
	// words are those before the colon, such as the version of a list.
	words []string
}

const always = 1 << 30

// ParseScript reads a section "server".
func ParseScript(text string) (*Script, error) {
	s := &Script{answers: map[string][]*Answer{}}
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		verb, _, _ := strings.Cut(line, " ")
		verb = strings.TrimSuffix(verb, ":")
		if !slices.Contains([]string{"list", "probe", "watch", "stream"}, verb) {
			return nil, fmt.Errorf("server: %q is not a kind of request", verb)
		}
		a, err := ParseAnswer(strings.TrimPrefix(line, verb), verb == "list")
		if err != nil {
			return nil, fmt.Errorf("server: %q: %w", line, err)
		}
		s.answers[verb] = append(s.answers[verb], a)
	}
	return s, nil
}

// ParseAnswer reads one answer, without the kind of request that it is for. The
// objects of a list stand between spaces, the events of a watch between commas.
func ParseAnswer(text string, list bool) (*Answer, error) {
	a := &Answer{times: 1}
	head, rest, listed := strings.Cut(text, ":")
	for _, word := range strings.Fields(head) {
		n, repeated := strings.CutPrefix(word, "×")
		switch {
		case !repeated:
			a.words = append(a.words, word)
		case n == "∞":
			a.times = always
		default:
			var err error
			if a.times, err = strconv.Atoi(n); err != nil {
				return nil, err
			}
		}
	}
	switch {
	case listed && list:
		a.Parts = strings.Fields(rest)
	case listed:
		for part := range strings.SplitSeq(rest, ",") {
			if part = strings.TrimSpace(part); part != "" {
				a.Parts = append(a.Parts, part)
			}
		}
	}
	return a, nil
}

// Has says whether a word stands before the colon.
func (a *Answer) Has(word string) bool { return slices.Contains(a.words, word) }

// Value gives the value of "name=value", empty if there is none.
func (a *Answer) Value(name string) string {
	for _, word := range a.words {
		if value, ok := strings.CutPrefix(word, name+"="); ok {
			return value
		}
	}
	return ""
}

// Fault gives the words after "error".
func (a *Answer) Fault() ([]string, bool) {
	i := slices.Index(a.words, "error")
	if i < 0 {
		return nil, false
	}
	return a.words[i+1:], true
}

// Version is the word that ends in a digit; "-", or no such word, stands for none.
func (a *Answer) Version() string {
	for _, word := range a.words {
		if last := word[len(word)-1]; last >= '0' && last <= '9' && !strings.Contains(word, "=") {
			return word
		}
	}
	return ""
}

// Wait takes the time that the answer takes. A deaf server does not hear that the
// client has gone.
func (a *Answer) Wait(ctx context.Context) error {
	var after <-chan time.Time
	if !a.Has("hang") {
		after = time.After(a.delay())
	}
	if a.Has("deaf") {
		ctx = context.Background()
	}
	select {
	case <-after:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (a *Answer) delay() time.Duration {
	value := a.Value("delay")
	if value == "" {
		return 0
	}
	d, err := time.ParseDuration(value)
	if err != nil {
		panic(err)
	}
	return d
}
