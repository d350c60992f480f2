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

// partValue is the SQL expression of a wide column at a place: l is the life, s its state
// there and b the base of that.
func partValue(id int64, column, place string) string {
	return fmt.Sprintf("tarn_part(%d, %s, l.id, %s, l.key, b.id, b.sum, b.cols, b.body, s.body)", id, text(column), place)
}

// part is the function tarn_part: the value of a wide column by collection, column, life
// and place, and by the rows of the state. The parts of one object are computed once.
func (p *past) part(ctx sqlite3.Context, args ...sqlite3.Value) {
	id, life, place := args[0].Int64(), args[2].Int64(), args[3].Int64()
	l := p.logs[id]
	if l == nil || l.render == nil || args[5].Type() == sqlite3.NULL {
		return
	}
	if p.last.parts == nil || p.last.id != id || p.last.life != life || p.last.place != place {
		parts, err := p.render(l, args[4:])
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

// render computes the parts of a state from its key, its base (id, checksum, columns and
// body) and its difference.
func (p *past) render(l *pastLog, row []sqlite3.Value) (parts map[string]JSON, err error) {
	key, base := tarn.Key(row[0].Text()), row[1].Int64()
	if l.base.id != base {
		l.base.id = 0 // its bytes are overwritten, also by a damaged base
		plain, err := l.packer.unpackBase(key, sumOf(row[2].RawBlob()), row[3].RawBlob(), row[4].RawBlob(), l.base.raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		l.base.id, l.base.raw = base, append(l.base.raw[:0], plain...)
	}
	var difference []byte
	if row[5].Type() != sqlite3.NULL {
		difference = row[5].RawBlob()
	}
	raw, err := rebuild(l.packer, l.base.raw, difference, &p.buf)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return l.parts(raw), nil
}

// parts returns the parts of an object. It returns none if the object cannot be shown: SQL
// then shows NULL, as it does for the present.
func (l *pastLog) parts(raw []byte) map[string]JSON {
	made := map[string]JSON{}
	err := func() (err error) {
		defer recoverTo(&err)
		made, err = l.render(raw)
		return err
	}()
	if err != nil || made == nil {
		return map[string]JSON{}
	}
	return made
}

func mapsKeys(m map[int64]bool) iter.Seq[int64] { return maps.Keys(m) }
