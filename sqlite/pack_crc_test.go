package sqlite

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// bodies returns how many objects of a file have a CRC, and how many have none.
func bodies(t *testing.T, dir string) (checked, unchecked int) {
	t.Helper()
	conn, err := sqlite3.Open("file:" + filepath.Join(dir, fileName) + "?mode=ro")
	must(t, err)
	defer conn.Close()
	must(t, query(conn, "SELECT body FROM "+objectsTable(1), func(row *sqlite3.Stmt) error {
		if row.ColumnRawBlob(0)[0]&packedCRC != 0 {
			checked++
		} else {
			unchecked++
		}
		return nil
	}))
	return checked, unchecked
}

// The objects of a directory of format 8 have no CRC. They are used as they are, and equal
// states of the source do not write them again. Those that change get one.
func TestDirectoryOfFormat8(t *testing.T) {
	dir := oldDirectory(t, 8)
	want, err := os.ReadFile("testdata/format7.txt") // it was converted from that one
	must(t, err)
	r := &pastRig{T: t, dir: dir, now: time.UnixMilli(1_780_000_300_000), version: 300}
	r.open(keepAll)
	checkSound(t, dir, nil)
	if got := pastIn(t, dir); got != string(want) {
		t.Errorf("the past is\n%s\nwant\n%s", got, want)
	}
	checked, before := bodies(t, dir)
	if checked != 0 || before == 0 {
		t.Fatalf("%d objects of format 8 have a CRC, and %d have none", checked, before)
	}
	loaded, err := r.sink.Load(t.Context())
	must(t, err)
	if len(loaded) != before {
		t.Errorf("%d of %d objects are loaded", len(loaded), before)
	}
	r.set("ns/new", "text")
	must(t, r.db.Flush())
	if checked, unchecked := bodies(t, dir); checked != 1 || unchecked != before {
		t.Errorf("after an object came, %d have a CRC, and %d have none; want 1 and %d", checked, unchecked, before)
	}
	checkSound(t, dir, nil)
	r.reopen(keepAll)
	must(t, r.db.Close())
}

// A CRC belongs to an object of a collection, and does not change the checksum by which
// objects are compared.
func TestCRCOfPackedBytes(t *testing.T) {
	keys, err := newFileKeys(nil, newSalt())
	must(t, err)
	p, foreign := &packer{owner: "things", keys: keys}, &packer{owner: "others", keys: keys}
	for _, plain := range [][]byte{{}, []byte("short"), bytes.Repeat([]byte("long "), 100)} {
		bare := p.squeeze(plain)
		sum := p.sum("a", bare)
		stored := p.appendCRC("a", bytes.Clone(bare))
		again := bytes.Clone(stored)
		if got, err := p.unpack("a", Sum{}, stored, nil); err != nil || !bytes.Equal(got, plain) {
			t.Errorf("%q is unpacked as %q, %v", plain, got, err)
		}
		if !bytes.Equal(stored, again) {
			t.Error("unpacking changed what is stored")
		}
		if got, err := p.unpackBase("a", sum, nil, stored, nil); err != nil || !bytes.Equal(got, plain) {
			t.Errorf("%q has another checksum with a CRC: it is unpacked as %q, %v", plain, got, err)
		}
		for what, wrong := range map[string]func() ([]byte, error){
			"another object":     func() ([]byte, error) { return p.unpack("b", sum, stored, nil) },
			"another collection": func() ([]byte, error) { return foreign.unpack("a", sum, stored, nil) },
			"a shorter one":      func() ([]byte, error) { return p.unpack("a", sum, stored[:len(stored)-1], nil) },
			"only its beginning": func() ([]byte, error) { return p.unpack("a", sum, stored[:1], nil) },
			"without its CRC":    func() ([]byte, error) { return p.unpack("a", Sum{}, bare, nil) },
		} {
			if got, err := wrong(); err == nil {
				t.Errorf("%s: unpacked as %q", what, fmt.Sprintf("%.20s", got))
			}
		}
	}
}
