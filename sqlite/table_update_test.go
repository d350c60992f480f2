package sqlite

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/testsize"
)

// bits shows each bit of a thing's number as an indexed column, and its padding as a label.
type bits struct {
	things
	columns int
}

func (b bits) Table() Table {
	t := Table{Columns: []Column{{Name: "n", Type: "INTEGER"}}}
	for i := range b.columns {
		name := fmt.Sprint("bit", i)
		t.Columns, t.Indexes = append(t.Columns, Column{Name: name, Type: "INTEGER"}), append(t.Indexes, []string{name})
	}
	return t
}

func (b bits) Row(t thing, _ []byte) (Row, error) {
	row := Row{Values: []any{t.N}, Labels: map[string]string{"pad": t.Pad}}
	for i := range b.columns {
		row.Values = append(row.Values, t.N>>(i%60)&1)
	}
	return row, nil
}

// Rows, indexes and labels are those of the last state, whichever columns change together,
// also if these are more than there are statements for, or more columns than a set has.
func TestUpdatesModel(t *testing.T) {
	for _, columns := range []int{1, 6, 61, 62, 63, 70} {
		for seed := range testsize.Of(8, 1) {
			t.Run(fmt.Sprintf("%d columns, seed %d", columns, seed), func(t *testing.T) {
				updatesModel(t, columns, rand.New(rand.NewPCG(uint64(columns), uint64(seed))))
			})
		}
	}
}

func updatesModel(t *testing.T, columns int, r *rand.Rand) {
	dir := directory(t)
	db := open(t, dir, Options{})
	s, err := NewStore(db, Collection{Name: "things", Identity: "test"}, bits{columns: columns})
	must(t, err)
	model := map[string]thing{}
	for step := range 100 {
		name := fmt.Sprint("t", r.IntN(3))
		was := model[name]
		now := thing{Name: name, N: was.N ^ 1<<r.IntN(60), Pad: was.Pad}
		if r.IntN(6) == 0 {
			now.Pad = fmt.Sprint(step)
		}
		model[name] = now
		must(t, s.Apply([]tarn.Change[thing]{{Type: tarn.Update, Key: tarn.Key(name), Object: now}}, tarn.At(tarn.Version(strconv.Itoa(step+1)))))
	}
	if n := len(s.c.stmts.table.updates.made); n > mostUpdates+1 || columns > 60 && n < mostUpdates {
		t.Errorf("there are %d statements for %d columns", n, columns)
	}
	for name, want := range model {
		for _, sql := range []string{
			fmt.Sprintf("SELECT n FROM things WHERE bit0 = %d AND key = '%s'", want.N&1, name),
			fmt.Sprintf("SELECT n FROM things JOIN things_labels l USING (id) WHERE l.name = 'pad' AND l.value = '%s' AND key = '%s' AND json_extract(labels, '$.pad') = l.value", want.Pad, name),
		} {
			result, err := Query(t.Context(), dir, sql, Limits{})
			must(t, err)
			if len(result.Rows) != 1 || result.Rows[0][0] != int64(want.N) {
				t.Errorf("%s: %v, want %d", sql, result.Rows, want.N)
			}
		}
	}
	must(t, db.Close())
	wantOK(t, dir, nil)
}
