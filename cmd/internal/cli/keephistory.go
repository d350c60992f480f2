package cli

import (
	"strings"
	"time"

	"github.com/tarnproject/tarn/sqlite"
)

const (
	// shortestHistory is the least age: the disk is written about once a second, and a
	// history of a few commits answers nothing.
	shortestHistory = time.Minute
	// smallestHistory is the least size, which bounds the whole file.
	smallestHistory = 1 << 20
)

// parseHistory parses the words of --history: an age, a size, and thin=AGE/INTERVAL, each at
// most once.
func parseHistory(text string) (h sqlite.History, err error) {
	if text == "" {
		return h, nil
	}
	for _, word := range strings.Split(text, ",") {
		word = strings.TrimSpace(word)
		thin, isThin := strings.CutPrefix(word, "thin=")
		age, noAge := parseSpan(word)
		bytes, noSize := parseSize(word)
		switch {
		case isThin && h.Thin != (sqlite.Thinning{}), noAge == nil && h.Age != 0, noSize == nil && h.Bytes != 0:
			return h, usagef("--history %s: %q is given besides another of its kind; there is one age, one size, and one thin= at most", text, word)
		case isThin:
			if h.Thin, err = parseThinning(text, thin); err != nil {
				return h, err
			}
		case noAge == nil && age < shortestHistory:
			return h, usagef("--history %s: an age of %s is too small; it is 1m or more", text, word)
		case noAge == nil:
			h.Age = age
		case noSize == nil && bytes < smallestHistory:
			return h, usagef("--history %s: %s is too small: it bounds the whole file, the present included, and is 1MiB or more", text, word)
		case noSize == nil:
			h.Bytes = bytes
		default:
			return h, usagef("--history %s: %q is neither an age such as 24h or 7d, nor a size such as 20GB, nor thin=24h/1m", text, word)
		}
	}
	switch {
	case h.Age == 0 && h.Bytes == 0:
		return h, usagef("--history %s says how states are thinned, and not for how long they are kept: add an age such as 7d, a size such as 20GB, or both", text)
	case h.Age > 0 && h.Thin.After > h.Age:
		return h, usagef("--history %s: states are removed before they are old enough to be thinned; let thin= begin earlier, or keep them for longer", text)
	}
	return h, nil
}

// parseThinning reads AGE/INTERVAL.
func parseThinning(text, words string) (sqlite.Thinning, error) {
	first, second, _ := strings.Cut(words, "/")
	after, noAfter := parseSpan(first)
	every, noEvery := parseSpan(second)
	if noAfter != nil || noEvery != nil || after < shortestHistory || every < time.Second {
		return sqlite.Thinning{}, usagef("--history %s: thin= takes an age of 1m or more and an interval of 1s or more, such as thin=24h/1m: after a day, the last state of each minute is kept", text)
	}
	return sqlite.Thinning{After: after, Every: every}, nil
}
