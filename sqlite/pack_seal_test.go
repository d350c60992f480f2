package sqlite

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/tarnproject/tarn"
)

// Every text is sealed with a key and a nonce of its own, so that no number of them is
// too many; and what was sealed is opened only as what it belongs to.
func TestSeals(t *testing.T) {
	keys, err := newFileKeys(bytes.Repeat([]byte{1}, keySize), newSalt())
	must(t, err)
	other, err := newFileKeys(bytes.Repeat([]byte{1}, keySize), newSalt())
	must(t, err)
	plain, owner := []byte("hunter2"), []byte("secrets\x00a")
	seen := map[string]bool{}
	for range 100 {
		sealed, err := keys.seal.close(plain, owner)
		must(t, err)
		aead, nonce, err := keys.seal.aead(sealed[:sealSaltSize])
		must(t, err)
		zeros := aead.Seal(nil, nonce, make([]byte, 64), nil) // differs for each key and nonce
		if seen[string(zeros)] || bytes.Contains(sealed, plain) {
			t.Fatal("a key was used twice, or the text is there in the clear")
		}
		seen[string(zeros)] = true
		if got, err := keys.seal.open(sealed, owner); err != nil || !bytes.Equal(got, plain) {
			t.Fatalf("it is opened as %q, %v", got, err)
		}
		if got, err := keys.seal.open(sealed, []byte("secrets\x00b")); err == nil {
			t.Errorf("another owner opens it as %q", got)
		}
		if got, err := other.seal.open(sealed, owner); err == nil {
			t.Errorf("another file with the same key opens it as %q", got)
		}
		if got, err := keys.seal.open(sealed[:len(sealed)-1], owner); err == nil {
			t.Errorf("without its end it is opened as %q", got)
		}
	}
}

// Unpacking returns what was packed, with and without key and dictionary, and fails
// for everything else.
func TestPack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var key []byte
		if rapid.Bool().Draw(t, "encrypted") {
			key = bytes.Repeat([]byte{7}, keySize)
		}
		keys, err := newFileKeys(key, bytes.Repeat([]byte{5}, saltSize))
		if err != nil {
			t.Fatal(err)
		}
		p := &packer{owner: "things", keys: keys}
		if rapid.Bool().Draw(t, "dictionary") {
			if err := p.use(storedDictionary(bytes.Repeat([]byte("words that are usual "), 20))); err != nil {
				t.Fatal(err)
			}
		}
		plain := []byte(rapid.StringN(0, 2000, -1).Draw(t, "object"))
		if rapid.Bool().Draw(t, "usual") {
			plain = append(plain, bytes.Repeat([]byte("words that are usual "), 20)...)
		}
		packed, sum, err := p.pack("a", plain)
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.unpack("a", sum, packed, nil)
		if err != nil || !bytes.Equal(got, plain) {
			t.Fatalf("%q is unpacked as %q, %v", plain, got, err)
		}
		at := rapid.IntRange(0, len(packed)-1).Draw(t, "at")
		packed[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if got, err := p.unpack("a", sum, packed, nil); err == nil && !bytes.Equal(got, plain) {
			t.Errorf("with a flipped bit %q is unpacked as %q", plain, got)
		}
		if got, err := p.unpack("b", sum, packed, nil); err == nil {
			t.Errorf("under another name it is unpacked as %q", got)
		}
	})
}

// A false length costs no memory.
func TestUnpackOfAHugeLength(t *testing.T) {
	keys, err := newFileKeys(nil, newSalt())
	must(t, err)
	p := &packer{owner: "things", keys: keys}
	must(t, p.use(storedDictionary(bytes.Repeat([]byte("words "), 20))))
	for _, how := range []byte{packedAlone, packedByDictionary, 77} {
		n := allocated(func() {
			packed := []byte{how, 0xff, 0xff, 0xff, 0xff, 0x0f, 1, 2, 3}
			if got, err := p.unpack(tarn.Key("a"), p.sum("a", packed), packed, nil); err == nil {
				t.Errorf("it is unpacked as %q", got)
			}
		})
		if n > 1<<20 {
			t.Errorf("%d bytes were taken", n)
		}
	}
	if _, _, err := p.pack("a", make([]byte, largestObject+1)); err == nil {
		t.Error("an object that could not be read was packed")
	}
}
