package podset

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// sorted makes clones the same in every run, whatever the order of maps.
func sorted(g groupWords) groupWords {
	slices.Sort(g.common)
	for _, own := range g.own {
		slices.Sort(own)
	}
	return g
}

// A cloner makes new pods of old ones by writing other words over the words that
// are theirs alone.
//
// A new word is as long as the old one, so that it can be put into the encoded
// pod wherever it occurs, be it a name or the middle of a managed field, and
// nothing in the pod's shape or size changes. Why not set the fields of a decoded
// pod: a hundred places hold a ReplicaSet's words, and one forgotten place would
// make clones share what real pods do not.
type cloner struct{ random *rand.Rand }

// clone returns the pods of one more ReplicaSet like g.
func (c cloner) clone(g group) [][]byte {
	used := map[string]bool{}
	common := c.pairs(nil, g.words.common, used)
	pods := make([][]byte, len(g.pods))
	for i := range g.pods {
		pods[i] = c.rewrite(g, i, common, used)
	}
	return pods
}

// distinct returns the pods of g as if each had a ReplicaSet of its own.
func (c cloner) distinct(g group) [][]byte {
	pods := make([][]byte, len(g.pods))
	for i := range g.pods {
		used := map[string]bool{}
		pods[i] = c.rewrite(g, i, c.pairs(nil, g.words.common, used), used)
	}
	return pods
}

func (c cloner) rewrite(g group, i int, common []string, used map[string]bool) []byte {
	pairs := c.pairs(slices.Clip(common), g.words.own[i], used)
	for _, ip := range g.words.ips[i] {
		pairs = append(pairs, ip, c.address(ip))
	}
	return []byte(strings.NewReplacer(pairs...).Replace(string(g.pods[i])))
}

// pairs appends the words, each followed by a new one that is not in used.
func (c cloner) pairs(pairs, words []string, used map[string]bool) []string {
	for _, old := range words {
		word := c.word(old)
		for try := 0; used[word] && try < 100; try++ {
			word = c.word(old)
		}
		used[word] = true
		pairs = append(pairs, old, word)
	}
	return pairs
}

// word keeps digits digits and hexadecimal letters hexadecimal, so that a uid or
// a digest stays one.
func (c cloner) word(old string) string {
	word := []byte(old)
	for i, b := range word {
		switch {
		case b <= '9':
			word[i] = '0' + byte(c.random.IntN(10))
		case b <= 'f':
			word[i] = 'a' + byte(c.random.IntN(6))
		default:
			word[i] = 'g' + byte(c.random.IntN(20))
		}
	}
	return string(word)
}

// address returns an IPv4 address of as many characters as old. Other addresses
// it leaves.
func (c cloner) address(old string) string {
	if len(old) < len("10.0.0.0") || len(old) > len("10.255.255.255") || strings.Contains(old, ":") {
		return old
	}
	for {
		ip := fmt.Sprintf("10.%d.%d.%d", c.random.IntN(256), c.random.IntN(256), c.random.IntN(256))
		if len(ip) == len(old) {
			return ip
		}
	}
}
