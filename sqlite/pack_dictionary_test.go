package sqlite

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"
)

// testWords are the words of a dictionary, in random order.
func testWords(size int) []byte {
	random := rand.New(rand.NewPCG(1, 2))
	var text []byte
	for len(text) < size {
		text = append(text, strings.Repeat(string(rune('a'+random.IntN(26))), 1+random.IntN(9))...)
	}
	return text[:size]
}

func testDictionary(t testing.TB, words, start []byte) *dictionary {
	d, err := newDictionary(s2.MakeDict(words, start).Bytes())
	must(t, err)
	return d
}

// What was compressed against a dictionary comes back, whatever the size of the dictionary,
// of the object and of the buffer.
func TestDictionaryDecodes(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, size := range []int{s2.MinDictSize, 100, 5 << 10, largestLed, largestLed + 1, largestDictionary} {
		words := testWords(size)
		for name, start := range map[string][]byte{"first": nil, "middle": words[size/3 : min(size/3+8, size)]} {
			d := testDictionary(t, words, start)
			for n := range 200 {
				var plain []byte
				if n%3 == 0 { // it begins where the dictionary says that objects do
					plain = append(plain, words[:size/2]...)
				}
				for range random.IntN(40) {
					from := random.IntN(size)
					plain = append(plain, words[from:min(size, from+random.IntN(60))]...)
					plain = append(plain, testWords(10)[random.IntN(5):]...)
				}
				packed := d.Encode(nil, plain)
				for _, buf := range [][]byte{nil, make([]byte, 0, 64<<10)} {
					got, err := d.decode(buf, packed)
					if err != nil || !bytes.Equal(got, plain) {
						t.Fatalf("%d bytes, %s: %d bytes became %d, %v", size, name, len(plain), len(got), err)
					}
				}
			}
		}
	}
}

// Bytes that s2 decodes with a dictionary are decoded to the same here, and others do no
// harm.
func FuzzDictionary(f *testing.F) {
	words := testWords(2000)
	d := testDictionary(f, words, words[500:508])
	f.Add(d.Encode(nil, append(words[600:900:900], words[500:700]...)))
	f.Add([]byte{200, 1, 1<<2 | 1, 0, 0, 'x'})
	f.Add([]byte{4, 0xff, 0xff, 0xff, 0xff, 0xff})
	buf := make([]byte, 0, 64<<10)
	f.Fuzz(func(t *testing.T, packed []byte) {
		if size, err := s2.DecodedLen(packed); err != nil || size > 1<<20 {
			return
		}
		want, err := d.Decode(nil, packed)
		got, ours := d.decode(buf, packed)
		if err == nil && (ours != nil || !bytes.Equal(got, want)) {
			t.Errorf("s2 decodes %x to %x, and here it is %x, %v", packed, want, got, ours)
		}
	})
}
