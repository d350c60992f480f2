package demo

import (
	"math/rand/v2"
	"time"
)

// random makes every choice of a workload.
type random struct{ *rand.Rand }

func newRandom(seed uint64) random { return random{rand.New(rand.NewPCG(seed, 0x7461726e))} }

func (c random) oneIn(n int) bool { return c.IntN(n) == 0 }

// within returns a duration from least up to most.
func (c random) within(least, most time.Duration) time.Duration {
	return least + time.Duration(c.Int64N(int64(most-least)))
}

func (c random) between(least, most int) int { return least + c.IntN(most-least+1) }

// suffix is one as in generated names.
func (c random) suffix(n int) string { return c.from("bcdfghjklmnpqrstvwxz2456789", n) }

func (c random) hex(n int) string { return c.from("0123456789abcdef", n) }

func (c random) from(alphabet string, n int) string {
	text := make([]byte, n)
	for i := range text {
		text[i] = alphabet[c.IntN(len(alphabet))]
	}
	return string(text)
}

func pick[T any](c random, from []T) T { return from[c.IntN(len(from))] }
