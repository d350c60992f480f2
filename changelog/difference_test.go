package changelog

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tarnproject/tarn/internal/testsize"
)

// roundTrip checks a difference both ways.
func roundTrip(t testing.TB, before, after []byte) []byte {
	t.Helper()
	d := AppendDifference([]byte("kept"), before, after)
	got, err := Apply([]byte("kept"), before, d[4:])
	if err != nil || !bytes.Equal(got[4:], after) || string(got[:4]) != "kept" || string(d[:4]) != "kept" {
		t.Fatalf("%q to %q: %q, %v", before, after, got, err)
	}
	return d[4:]
}

func TestDifferences(t *testing.T) {
	long := strings.Repeat("a field that stays as it is; ", 40)
	for _, c := range []struct {
		before, after string
		most          int
	}{
		{"", "", 1}, {"", "new", 6}, {"old", "", 1}, {"same", "same", 4}, {long, long, 6},
		{long + "version 1000" + long, long + "version 1001" + long, 12},
		{long + "x" + long, long + "much longer" + long, 30},
		{long + "much longer" + long, long + "x" + long, 20},
		{"a" + long, long + "b", 16}, {long, "b" + long + "c" + long, 20},
		// A value that moves to a new field before it, as the id of a container that ended.
		{long + "{image: 0123456789abcdef, id: 8d1f6c0e55aa2b37}" + long, long + "{last: 8d1f6c0e55aa2b37, image: 0123456789abcdef, id: e77a90b14c2d5f68}" + long, 60},
	} {
		if d := roundTrip(t, []byte(c.before), []byte(c.after)); len(d) > c.most {
			t.Errorf("%.20q to %.20q takes %d bytes, want at most %d", c.before, c.after, len(d), c.most)
		}
	}
}

func TestRandomDifferences(t *testing.T) {
	for seed := range uint64(testsize.Of(2000, 200)) {
		random := rand.New(rand.NewPCG(seed, 1))
		before := make([]byte, random.IntN(600))
		for i := range before {
			before[i] = byte('a' + random.IntN(3))
		}
		after := bytes.Clone(before)
		for range random.IntN(6) {
			at := random.IntN(len(after) + 1)
			end := min(at+random.IntN(30), len(after))
			piece := make([]byte, random.IntN(30))
			for i := range piece {
				piece[i] = byte('a' + random.IntN(4))
			}
			after = append(append(bytes.Clone(after[:at]), piece...), after[end:]...)
		}
		roundTrip(t, before, after)
	}
}

func FuzzDifference(f *testing.F) {
	f.Add([]byte("before"), []byte("after"))
	f.Add([]byte(strings.Repeat("0123456789", 20)), []byte(strings.Repeat("0123456789", 19)+"x"))
	f.Fuzz(func(t *testing.T, before, after []byte) { roundTrip(t, before, after) })
}

// A damaged difference is an error, or makes other bytes: never a panic, or much memory.
func FuzzApply(f *testing.F) {
	f.Add([]byte("before"), AppendDifference(nil, []byte("before"), []byte("before and after")))
	f.Fuzz(func(t *testing.T, before, difference []byte) {
		made, err := Apply(nil, before, difference)
		if err == nil && len(made) > len(before)*len(difference)+len(difference) {
			t.Errorf("%d bytes of %d and %d", len(made), len(before), len(difference))
		}
	})
}

// status is about what a pod of 9.6 KB is before and after a status update.
func status(n int) []byte {
	var b bytes.Buffer
	for i := range 200 {
		fmt.Fprintf(&b, "field %d of the object: %x;", i, i*7919)
		if i == 3 || i > 150 && i%20 == 0 {
			fmt.Fprintf(&b, "time 2026-01-02T12:%02d:%02d", n/60%60, n%60)
		}
		b.WriteString("     and more of it")
	}
	return b.Bytes()
}

func BenchmarkDifference(b *testing.B) {
	before, after := status(100), status(1234)
	d := AppendDifference(nil, before, after)
	b.ReportMetric(float64(len(d)), "bytes")
	b.Run("make", func(b *testing.B) {
		for b.Loop() {
			d = AppendDifference(d[:0], before, after)
		}
	})
	b.Run("apply", func(b *testing.B) {
		var made []byte
		for b.Loop() {
			made, _ = Apply(made[:0], before, d)
		}
	})
}
