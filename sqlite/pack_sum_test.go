package sqlite

import (
	"fmt"
	"hash/crc32"
	"testing"

	"github.com/tarnproject/tarn"
)

// sumsOf are the checksums of a directory's objects, by which a reader detects changes.
func sumsOf(t testing.TB, dir string) map[tarn.Key]Sum {
	t.Helper()
	v, err := OpenReader(dir, nil)
	must(t, err)
	defer v.Close()
	all := map[tarn.Key]Sum{}
	_, err = v.Walk(t.Context(), "things", func(e Entry) error { all[e.Key] = e.Sum; return nil })
	must(t, err)
	return all
}

// Objects that were made to have the same CRC have different checksums.
func TestObjectsOfTheSameCRC(t *testing.T) {
	const one, other = "iwhcqfys", "loirnbzl"
	table := crc32.MakeTable(crc32.Castagnoli)
	if crc32.Checksum([]byte(one), table) != crc32.Checksum([]byte(other), table) {
		t.Fatal("they have different ones, so nothing is tested")
	}
	dir := directory(t)
	s := openRich(t, open(t, dir, Options{}))
	var seen []Sum
	for _, pad := range []string{one, other} {
		c := put("a", 1)
		c.Object.Pad = pad
		must(t, s.Apply([]tarn.Change[thing]{c}, tarn.At("1")))
		seen = append(seen, sumsOf(t, dir)["a"])
		if got := ask1(t, dir, "SELECT status ->> 'pad' FROM things"); got != pad {
			t.Errorf("SQL shows %s of %s", got, pad)
		}
	}
	if seen[0] == seen[1] {
		t.Errorf("two objects have the checksum %x", seen[0])
	}
}

// A user who writes objects cannot know their checksums: those of another file, which are all
// that can be seen in advance, are different.
func TestChecksumsHaveAKey(t *testing.T) {
	seen := map[string]bool{}
	for range 2 {
		dir, _ := richDirectory(t, 3, nil)
		for key, sum := range sumsOf(t, dir) {
			if text := fmt.Sprintf("object %s %x", key, sum); seen[text] {
				t.Errorf("two files have %s", text)
			} else {
				seen[text] = true
			}
		}
		r, err := Query(t.Context(), dir, `SELECT 'found', key, found FROM tarn_objects_1
			UNION ALL SELECT 'row', key, hex(tarn_sum) FROM tarn_rows_1
			UNION ALL SELECT 'value', id, hex(sum) FROM tarn_wide_1_spec_values
			UNION ALL SELECT 'wide', id, hex(tarn_sum) FROM tarn_wide_1_status`, Limits{})
		must(t, err)
		if len(r.Rows) < 9 {
			t.Fatalf("only %d checksums were found", len(r.Rows))
		}
		for _, row := range r.Rows {
			if text := fmt.Sprint(row...); seen[text] {
				t.Errorf("two files have %s", text)
			} else {
				seen[text] = true
			}
		}
	}
}
