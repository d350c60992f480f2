package demo

import (
	"math/rand/v2"
	"time"
)

// chance makes every choice of a workload.
type chance struct{ *rand.Rand }

func newChance(seed uint64) chance { return chance{rand.New(rand.NewPCG(seed, 0x7461726e))} }

func (c chance) oneIn(n int) bool { return c.IntN(n) == 0 }

// within returns a duration from least up to most.
func (c chance) within(least, most time.Duration) time.Duration {
	return least + time.Duration(c.Int64N(int64(most-least)))
}

func (c chance) between(least, most int) int { return least + c.IntN(most-least+1) }

// suffix is as the names of generated objects end.
func (c chance) suffix(n int) string { return c.from("bcdfghjklmnpqrstvwxz2456789", n) }

func (c chance) hex(n int) string { return c.from("0123456789abcdef", n) }

func (c chance) from(alphabet string, n int) string {
	text := make([]byte, n)
	for i := range text {
		text[i] = alphabet[c.IntN(len(alphabet))]
	}
	return string(text)
}

func pick[T any](c chance, from []T) T { return from[c.IntN(len(from))] }
