package postgres

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tarnproject/tarn"
)

// slowly decodes objects as a busy process does.
type slowly struct{ raw }

func (s slowly) Decode(data []byte) (object, error) {
	time.Sleep(time.Millisecond)
	return s.raw.Decode(data)
}

// A limit of the user for statements does not keep a large table from being read.
func TestLimitsOfTheUserForReading(t *testing.T) {
	address := database(t)
	db := connect(t, address, Options{})
	s := NewSink(db, "things", "all", raw{})
	must(t, open(t.Context(), s))
	var all []tarn.Change[object]
	for i := range 1000 {
		all = append(all, thing(tarn.Key(fmt.Sprint("k", i)), "1", `{"text": "`+strings.Repeat("x", 4000)+`"}`))
	}
	must(t, s.Commit(t.Context(), whole(batch("1", all...))))
	s.Close()
	limited := connect(t, address+"&statement_timeout=200", Options{})
	s = NewSink(limited, "things", "all", slowly{})
	must(t, open(t.Context(), s))
	defer s.Close()
	loaded, err := s.Load(t.Context())
	if err != nil || len(loaded) != len(all) {
		t.Errorf("it has loaded %d of %d (%v)", len(loaded), len(all), err)
	}
}
