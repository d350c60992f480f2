package sqlite

import (
	"encoding/json"
	"testing"

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
