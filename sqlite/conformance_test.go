package sqlite

import (
	"encoding/json"
	"testing"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/storetest"
)

type objects struct{}

func (objects) Append(buf []byte, o storetest.Object) ([]byte, error) {
	raw, err := json.Marshal(o)
	return append(buf, raw...), err
}

func (objects) Decode(raw []byte) (o storetest.Object, err error) {
	return o, json.Unmarshal(raw, &o)
}

func (objects) Schema() string { return "objects" }

func newObjects(t *testing.T, opts Options) *Store[storetest.Object] {
	s, err := NewStore(open(t, directory(t), opts), Collection{Name: "objects"}, objects{})
	must(t, err)
	return s
}

func TestConformance(t *testing.T) {
	t.Run("on disk", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) tarn.ReadStore[storetest.Object] { return newObjects(t, Options{}) })
	})
}
