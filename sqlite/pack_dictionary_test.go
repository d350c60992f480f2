package sqlite

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"

	"github.com/tarnproject/tarn"
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

// An object that was compressed against a dictionary is never loaded with another one, also
// if only a letter of it differs.
func TestDamagedDictionary(t *testing.T) {
	words := strings.Repeat("words that are usual in things; ", 5)
	for name, opts := range map[string]Options{"plain": {}, "encrypted": {Key: bytes.Repeat([]byte{7}, keySize)}} {
		t.Run(name, func(t *testing.T) {
			dir := directory(t)
			sink := func(db *DB) *Sink[thing] {
				s, err := NewSink(db, Collection{Name: "things", Identity: "test", Dictionary: []byte(words)}, things{})
				must(t, err)
				return s
			}
			db := open(t, dir, opts)
			o := put("ns/a", 1)
			o.Object.Pad = words
			must(t, sink(db).Commit(t.Context(), tarn.Batch[thing]{Whole: true, Changes: []tarn.Change[thing]{o}, Positions: []tarn.Position{tarn.At("1")}}))
			must(t, db.writer.Exec("UPDATE tarn_dictionaries SET value=CAST(replace(CAST(value AS TEXT), 'usual', 'usuaL') AS BLOB)"))
			must(t, db.Close())
			if report, err := Check(t.Context(), dir, opts.Key); err != nil || report.OK() {
				t.Errorf("check finds nothing: %v, %v", report, err)
			}
			if items, err := sink(open(t, dir, opts)).Load(t.Context()); !errors.Is(err, tarn.ErrSinkEmpty) {
				t.Errorf("it loads %v, %v", items, err)
			}
			if all := reports(t, dir); len(all) != 1 {
				t.Errorf("there are the reports %v", all)
			}
		})
	}
}

// The dictionaries of a directory of format 11 have no checksums. They get them, and its
// content is used.
func TestDirectoryOfFormat11(t *testing.T) {
	r := openOldBundles(t, 11)
	if got := r.load(); got != 2 {
		t.Errorf("a load reads %d bundles, want 2", got)
	}
	must(t, r.sink.store.dropBundles())
	r.load() // with the dictionary
	r.reopen()
	r.load()
	if n, err := number(r.db.writer, "SELECT count(sum) FROM tarn_dictionaries"); n != 1 || err != nil {
		t.Errorf("%d dictionaries have a checksum (%v), want 1", n, err)
	}
}
