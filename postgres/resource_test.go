package postgres

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// sinkOf is the sink of a table that has some resource.
func sinkOf(db *DB, table, resource string) *Sink[object] {
	s := NewSink(db, table, "all", plain{})
	s.wanted.of = resource
	return s
}

// A table that has another resource, or its history, is left alone, whichever process and cluster
// asks for it, until somebody drops it.
func TestTableOfAnotherResource(t *testing.T) {
	address := database(t)
	db := connect(t, address, Options{History: true})
	first := sinkOf(db, "gears_a_b", "gears.a-b")
	must(t, open(t.Context(), first))
	must(t, first.Commit(t.Context(), whole(batch("9", thing("a", "1", "")))))
	for name, in := range map[string]*DB{"beside it": db, "in another process": connect(t, address, Options{}), "of another cluster": connect(t, address, Options{Cluster: "other"})} {
		second := sinkOf(in, "gears_a_b", "gears.a.b")
		if err := open(t.Context(), second); !errors.Is(err, ErrOtherResource) || !strings.Contains(err.Error(), "gears_a_b has gears.a-b, and gears.a.b has") {
			t.Errorf("%s: it says %v", name, err)
		}
		second.Close()
		third := sinkOf(in, "gears_a_b_history", "gears.a.b.history")
		if err := open(t.Context(), third); !errors.Is(err, ErrOtherResource) || !strings.Contains(err.Error(), "has the history of gears.a-b") {
			t.Errorf("%s, a table with the name of a history: it says %v", name, err)
		}
		third.Close()
	}
	must(t, first.Commit(t.Context(), batch("10", thing("b", "10", ""))))
	first.Close()
	db.wants(t, "SELECT cluster, key, resource_version FROM gears_a_b ORDER BY key", "default|a|1", "default|b|10")
	db.wants(t, "SELECT cluster, resource FROM tarn_feeds", "default|gears_a_b")

	// Versions before this one did not record it.
	_, err := db.pool.Exec(t.Context(), "UPDATE tarn_tables SET resource = ''")
	must(t, err)
	kept, err := first.Open(t.Context(), nil)
	if err != nil || len(kept.Positions) != 1 {
		t.Errorf("it begins at %v (%v)", kept.Positions, err)
	}
	first.Close()
	db.wants(t, "SELECT name, resource FROM tarn_tables ORDER BY name", "gears_a_b|gears.a-b", "gears_a_b_history|the history of gears.a-b")
	_, err = db.pool.Exec(t.Context(), "DROP TABLE gears_a_b, gears_a_b_history")
	must(t, err)
	second := sinkOf(db, "gears_a_b", "gears.a.b")
	if kept, err = second.Open(t.Context(), nil); err != nil || len(kept.Positions) > 0 {
		t.Errorf("in the place of the dropped one it begins at %v (%v)", kept.Positions, err)
	}
	second.Close()
}

// A claim leaves out what it may not feed, so that the feeder of the other resource is not kept
// waiting.
func TestClaimOfAnotherResource(t *testing.T) {
	address := database(t)
	db, other := connect(t, address, Options{}), connect(t, address, Options{})
	one, two, pods := schema.GroupResource{Group: "a-b", Resource: "gears"}, schema.GroupResource{Group: "a.b", Resource: "gears"}, schema.GroupResource{Resource: "pods"}
	s := sinkOf(db, TableName(one), one.String())
	must(t, open(t.Context(), s))
	for range 2 { // while it is fed, and afterwards
		if err := other.ClaimResources(t.Context(), two); !errors.Is(err, ErrOtherResource) {
			t.Errorf("the claim says %v", err)
		}
		must(t, other.ClaimResources(t.Context(), two, pods))
		s.Close()
	}
	must(t, db.ClaimResources(t.Context(), one))
	if err := db.ClaimResources(t.Context(), pods); !isOwned(err) {
		t.Errorf("the claim says %v", err)
	}
}
