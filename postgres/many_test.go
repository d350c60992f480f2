package postgres

import (
	"flag"
	"fmt"
	"strconv"
	"testing"

	"github.com/tarnproject/tarn"
)

var many = flag.Int("objects", 2000, "how many objects TestManyUnchanged has")

// A restart with many unchanged objects writes no row of them. If the position is lost, only
// the rows that differ are written.
func TestManyUnchanged(t *testing.T) {
	address := database(t)
	db := connect(t, address, Options{})
	var all []tarn.Change[object]
	for i := range *many {
		all = append(all, thing(tarn.Key(fmt.Sprintf("ns-%d/object-%d", i%10, i)), tarn.Version(strconv.Itoa(i+1)), "a small one"))
	}
	at := tarn.Version(strconv.Itoa(*many))
	s := NewSink(db, "things", "all", plain{})
	must(t, open(t.Context(), s))
	must(t, s.Commit(t.Context(), whole(batch(at, all...))))
	s.Close()
	db.query(t, "CREATE TABLE before AS SELECT key, xmin::text AS writer FROM things")
	wrote := func(n int) {
		t.Helper()
		db.wants(t, "SELECT count(*) FROM things t LEFT JOIN before b USING (key) WHERE b.writer IS DISTINCT FROM t.xmin::text", fmt.Sprint(n))
		db.wants(t, "SELECT count(*) FROM things", fmt.Sprint(*many))
	}
	wrote(0)

	kept, err := s.Open(t.Context(), nil)
	must(t, err)
	if len(kept.Positions) != 1 || kept.Positions[0].Version != at || !kept.Positions[0].Complete {
		t.Fatalf("it begins at %+v", kept.Positions)
	}
	loaded, err := s.Load(t.Context())
	if err != nil || len(loaded) != *many {
		t.Fatalf("it begins with %d objects (%v)", len(loaded), err)
	}
	must(t, s.Commit(t.Context(), batch(tarn.Version(strconv.Itoa(*many+1)))))
	s.Close()
	wrote(0)

	db.query(t, "UPDATE tarn_feeds SET positions = NULL")
	kept, err = s.Open(t.Context(), nil)
	must(t, err)
	defer s.Close()
	if len(kept.Positions) != 0 {
		t.Fatalf("without a position it begins at %+v", kept.Positions)
	}
	later := func(i, version int, text string) tarn.Change[object] {
		return thing(all[i].Key, tarn.Version(strconv.Itoa(version)), text)
	}
	all[7], all[8] = later(7, *many+2, "changed"), later(8, *many+3, "changed")
	all[9] = thing("ns-1/new", tarn.Version(strconv.Itoa(*many+4)), "instead of another one")
	must(t, s.Commit(t.Context(), whole(batch(tarn.Version(strconv.Itoa(*many+4)), all...))))
	wrote(3)
}
