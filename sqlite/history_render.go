package sqlite

import (
	"fmt"
	"iter"
	"maps"
	"strings"
	"sync"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn"
)

// A Renderer returns the values of the wide columns of a collection, by their names, from
// an object's bytes, as [Tabular].Row makes them. Any number of goroutines may call it.
type Renderer func(raw []byte) (map[string]JSON, error)

// renderers are the functions that know the objects of collections.
var renderers struct {
	mu  sync.Mutex
	all []func(Holding) Renderer
}

// RegisterRenderer lets statements show whole objects of the past. find returns the
// renderer of a collection, by its identity and schema; nil if it does not know it. Without
// one, wide columns of the past are NULL.
//
// Why a register: a statement runs on a directory whose objects this package cannot read,
// and values of the past are stored as objects only.
func RegisterRenderer(find func(Holding) Renderer) {
	renderers.mu.Lock()
	defer renderers.mu.Unlock()
	renderers.all = append(renderers.all, find)
}

func rendererOf(row collectionRow) Renderer {
	renderers.mu.Lock()
	defer renderers.mu.Unlock()
	h := Holding{Collection: Collection{Name: row.name}}
	h.Identity, h.Schema, _ = strings.Cut(row.identity, "\n")
	h.Schema, h.Tables, _ = strings.Cut(h.Schema, "\n")
	for i := len(renderers.all) - 1; i >= 0; i-- {
		if r := renderers.all[i](h); r != nil {
			return r
		}
	}
	return nil
}

// part is the function tarn_part: the value of a wide column by collection, column, life
// and place. The parts of one object are computed once.
//
// Why it finds the state itself: an object has four parts, and the statement would find its
// state and its base for each of them.
func (p *past) part(ctx sqlite3.Context, args ...sqlite3.Value) {
	id, life, place := args[0].Int64(), args[2].Int64(), args[3].Int64()
	l := p.logs[id]
	if l == nil || l.render == nil {
		return
	}
	if p.last.parts == nil || p.last.id != id || p.last.life != life || p.last.place != place {
		parts, err := p.render(l, life, place)
		if err != nil {
			ctx.ResultError(fmt.Errorf("the history of %s: %w", l.row.name, err))
			return
		}
		p.last.id, p.last.life, p.last.place, p.last.parts = id, life, place, parts
	}
	if value, ok := p.last.parts[args[1].Text()]; ok && value != nil {
		ctx.ResultRawText(value)
	}
}

// render computes the parts of the state that was valid at a place.
func (p *past) render(l *pastLog, life, place int64) (parts map[string]JSON, err error) {
	parts = map[string]JSON{}
	err = l.query(l.stateAt, func(row *sqlite3.Stmt) (err error) {
		key, base := tarn.Key(row.ColumnText(0)), row.ColumnInt64(1)
		if l.base.id != base {
			plain, err := l.packer.unpackBase(key, sumOf(row.ColumnRawBlob(2)), row.ColumnRawBlob(5), row.ColumnRawBlob(3), l.base.raw)
			if err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
			l.base.id, l.base.raw = base, append(l.base.raw[:0], plain...)
		}
		var difference []byte
		if row.ColumnType(4) != sqlite3.NULL {
			difference = row.ColumnRawBlob(4)
		}
		raw, err := rebuild(l.packer, l.base.raw, difference, &p.buf)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		defer recoverTo(&err)
		if made, err := l.render(raw); err == nil {
			parts = made
		} // else SQL shows NULL, as it does of the present
		return nil
	}, life, place)
	return parts, err
}

// stateAt finds the state of a life that was valid at a place.
func stateAt(id int64) string {
	return fmt.Sprintf("SELECT l.key, b.id, b.sum, b.body, s.body, b.cols FROM main.%s s CROSS JOIN main.%s l ON l.id=s.life CROSS JOIN main.%s b ON b.id=s.base WHERE s.life=? AND s.seq<=? ORDER BY s.seq DESC LIMIT 1",
		statesTable(id), livesTable(id), basesTable(id))
}

func mapsKeys(m map[int64]bool) iter.Seq[int64] { return maps.Keys(m) }
