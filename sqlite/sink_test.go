package sqlite

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/sinktest"
)

// sunk is the codec of the suite's objects.
type sunk struct{}

func (sunk) Append(buf []byte, o sinktest.Object) ([]byte, error) {
	raw, err := json.Marshal(o)
	return append(buf, raw...), err
}

func (sunk) Decode(raw []byte) (o sinktest.Object, err error) { return o, json.Unmarshal(raw, &o) }

func (sunk) Schema() string { return "sunk" }

// The sink keeps the contract, with a directory that the next process opens.
func TestSinkConformance(t *testing.T) {
	sinktest.Run(t, func(t *testing.T) sinktest.Subject {
		dir := directory(t)
		var db *DB
		return sinktest.Subject{Open: func() tarn.Sink[sinktest.Object] {
			if db != nil {
				must(t, db.Close())
			}
			db = open(t, dir, Options{})
			s, err := NewSink(db, Collection{Name: "objects", Identity: "test"}, sunk{})
			must(t, err)
			return s
		}}
	})
}

// A repair has the position that the sink already had, which does not show whether an
// earlier attempt to write it took effect.
func TestRepairIsWrittenAfterAFullDisk(t *testing.T) {
	disk, opts := newBadDisk(t)
	opts.History = keepAll
	s, err := NewSink(open(t, directory(t), opts), Collection{Name: "things", Identity: "test"}, things{})
	must(t, err)
	at := []tarn.Position{tarn.At("5")}
	must(t, s.Commit(t.Context(), tarn.Batch[thing]{Whole: true, Changes: []tarn.Change[thing]{put("a", 1)}, Positions: at}))
	repair := tarn.Batch[thing]{Changes: []tarn.Change[thing]{put("a", 2)}, Positions: at}
	disk.failing(func(op, name string) error { return sqlite3.FULL })
	if err := s.Commit(t.Context(), repair); !errors.Is(err, sqlite3.FULL) {
		t.Errorf("a full disk says %v", err)
	}
	disk.failing(nil)
	repair.Again = true
	must(t, s.Commit(t.Context(), repair))
	expect(t, s.store, "5", map[tarn.Key]int{"a": 2})
}

// A large first state is written in several transactions. The objects that any of them could not
// write are in the result, and so in Health.
func TestUnwritableObjectOfALargeState(t *testing.T) {
	for name, history := range map[string]History{"last states": {}, "history": keepAll} {
		t.Run(name, func(t *testing.T) {
			s, err := NewSink(open(t, directory(t), Options{History: history}), Collection{Name: "things", Identity: "test"}, things{})
			must(t, err)
			changes := []tarn.Change[thing]{{Type: tarn.Add, Key: "0", Object: thing{Name: "unwritable"}, Version: "3"}}
			for i := range 2 * largeState {
				changes = append(changes, put(fmt.Sprint(1_000_000+i), i))
			}
			changes = append(changes, tarn.Change[thing]{Type: tarn.Add, Key: "2", Object: thing{Name: "unwritable"}, Version: "4"})
			err = s.Commit(t.Context(), tarn.Batch[thing]{Whole: true, Changes: changes, Positions: []tarn.Position{tarn.At("5")}})
			bad, _ := errors.AsType[tarn.ObjectErrors](err)
			if len(bad) != 2 || bad[0].Key != "0" || bad[1].Key != "2" {
				t.Errorf("the answer is %v, and 0 and 2 could not be written", err)
			}
		})
	}
}
