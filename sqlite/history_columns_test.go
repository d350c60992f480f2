package sqlite

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

// Every value of a state is found in what differs from its base, or in the base, and
// nothing else is.
func TestLoggedValues(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 8))
	value := func() any {
		return []any{nil, int64(0), random.Int64(), -random.Int64(), random.NormFloat64(), "", fmt.Sprint("text ", random.IntN(4)), string(make([]byte, random.IntN(300)))}[random.IntN(8)]
	}
	const columns = 70 // numbers of one byte and of two
	for range 3000 {
		base, state := map[int]any{}, map[int]any{}
		for range random.IntN(20) {
			n := random.IntN(columns)
			base[n] = value()
			if state[n] = base[n]; random.IntN(3) == 0 {
				state[n] = value()
			}
		}
		if random.IntN(3) == 0 {
			state[random.IntN(columns)] = value()
		}
		all, now := valueList(base), valueList(state)
		differing := differentValues(nil, all, now)
		if bytes.Equal(all, now) != (differing == nil) {
			t.Fatalf("%v and %v differ by %x", base, state, differing)
		}
		for n := range columns {
			if v, _ := findValue(n, differing, all); v.plain() != state[n] {
				t.Fatalf("column %d is %v, want %v", n, v.plain(), state[n])
			}
			if v, found := findValue(n, differing); found && v.plain() == base[n] {
				t.Fatalf("column %d is %v in the base, and is stored again", n, base[n])
			}
		}
	}
}

// Bytes that are no values are read without a panic, and to an end.
func FuzzLoggedValues(f *testing.F) {
	f.Add(valueList(map[int]any{0: "{}", 3: int64(-7), 9: 1.5, 200: "text"}), []byte{1, 2, 3})
	f.Add([]byte{3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1}, []byte{2, 0})
	f.Fuzz(func(t *testing.T, base, state []byte) {
		for rest, ok := base, true; ok; {
			var v loggedValue
			if v, rest, ok = nextValue(rest); ok {
				_ = v.plain()
			}
		}
		differing := differentValues(nil, base, state)
		_, _ = findValue(3, differing, base)
	})
}
