package jetstream

import (
	"reflect"
	"testing"
	"time"
)

// A checkpoint that can be read is the same when it is written and read again, and its lease
// and positions can be asked for.
func FuzzCheckpoint(f *testing.F) {
	data, err := Checkpoint{Lease: "30s", Positions: []CheckpointPosition{{"s", "e", "7", true}}, Incomplete: true, Commit: "x"}.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"format":2,"lease":"1s"}`))
	f.Add([]byte(`{"format":1,"lease":"soon"}`))
	f.Add([]byte(`{"format":1,"lease":"1s","positions":null,"lastContact":"0001-01-01T00:00:00Z"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := decodeCheckpoint(data)
		if err != nil {
			return
		}
		for _, p := range c.positions() {
			if c.Incomplete && p.Complete {
				t.Errorf("a position is complete, and the checkpoint is not")
			}
		}
		if now := time.Now(); c.Released && c.ends(now).After(now) {
			t.Error("a lease that was given up lasts")
		}
		again, err := c.encode()
		if err != nil {
			t.Fatal(err)
		}
		if back, err := decodeCheckpoint(again); err != nil || !reflect.DeepEqual(back.positions(), c.positions()) || !back.LastContact.Equal(c.LastContact) {
			t.Errorf("%+v is read again as %+v (%v)", c, back, err)
		}
	})
}
