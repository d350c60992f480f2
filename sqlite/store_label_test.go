package sqlite

import (
	"slices"
	"testing"
	"time"

	"github.com/tarnproject/tarn"
)

// A section whose content is of another source has no position on disk until it is written
// in another epoch, or added again. The others keep theirs.
func TestSectionOfAnotherSource(t *testing.T) {
	for name, history := range map[string]History{"without a history": {}, "with a history": keepAll} {
		t.Run(name, func(t *testing.T) {
			dir := directory(t)
			var db *DB
			var sink *Sink[thing]
			start := func() {
				t.Helper()
				db = open(t, dir, Options{History: history})
				var err error
				sink, err = NewSink(db, Collection{Name: "things", Identity: "test"}, things{})
				must(t, err)
			}
			commit := func(all ...tarn.Position) {
				t.Helper()
				must(t, sink.Commit(t.Context(), tarn.Batch[thing]{Changes: []tarn.Change[thing]{put("a/x", 1), put("b/x", 1)}, Positions: all, LastContact: time.Now()}))
			}
			// expect starts again, as after a kill.
			expect := func(want ...tarn.Position) {
				t.Helper()
				must(t, db.Close())
				start()
				kept, err := sink.Open(t.Context(), func() error { return nil })
				must(t, err)
				if !slices.Equal(kept.Positions, want) {
					t.Errorf("a start finds %v, want %v", kept.Positions, want)
				}
			}
			at := func(section, epoch string, v tarn.Version) tarn.Position {
				return tarn.Position{Section: section, Epoch: epoch, Version: v, Complete: true}
			}
			start()
			commit(at("a", "", "5"), at("b", "", "7"))
			expect(at("a", "", "5"), at("b", "", "7"))

			must(t, sink.SetLabel("another b", true, "b"))
			commit(at("a", "", "6"), at("b", "", "7"))
			commit(at("a", "", "8"), at("b", "", "7"))
			expect(at("a", "", "8"))

			commit(at("a", "", "8"), at("b", "later", "3"))
			must(t, sink.SetLabel("a third b", true, "b"))
			commit(at("a", "", "9"), at("b", "later", "3"))
			commit(at("a", "", "9"), at("b", "third", "4"))
			expect(at("a", "", "9"), at("b", "third", "4"))

			must(t, sink.SetLabel("a fourth b", true, "b"))
			commit(at("a", "", "10"))
			commit(at("a", "", "10"), at("b", "third", "5"))
			expect(at("a", "", "10"), at("b", "third", "5"))

			must(t, sink.SetLabel("others", true))
			expect()
			commit(at("a", "", "11"), at("b", "third", "5"))
			must(t, sink.SetLabel("others again", true))
			commit(at("a", "fifth", "2"), at("b", "third", "5"))
			expect(at("a", "fifth", "2"))
		})
	}
}
