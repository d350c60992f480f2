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

// part is the function tarn_part: the value of a wide column of a state, by collection,
// column, life, number, key, sum and body of the base, and body of the state. The parts of
// one object are computed once.
func (p *past) part(ctx sqlite3.Context, args ...sqlite3.Value) {
	id, life, seq := args[0].Int64(), args[2].Int64(), args[3].Int64()
	l := p.logs[id]
	if l == nil || l.render == nil {
		return
	}
	if p.last.parts == nil || p.last.id != id || p.last.life != life || p.last.seq != seq {
		parts, err := p.render(l, tarn.Key(args[4].Text()), sumOf(args[5].RawBlob()), args[6].RawBlob(), args[7])
		if err != nil {
			ctx.ResultError(fmt.Errorf("the history of %s, %s: %w", l.row.name, args[4].Text(), err))
			return
		}
		p.last.id, p.last.life, p.last.seq, p.last.parts = id, life, seq, parts
	}
	if value, ok := p.last.parts[args[1].Text()]; ok && value != nil {
		ctx.ResultRawText(value)
	}
}

func (p *past) render(l *pastLog, key tarn.Key, sum Sum, base []byte, body sqlite3.Value) (parts map[string]JSON, err error) {
	plain, err := l.packer.unpack(key, sum, base, nil)
	if err != nil {
		return nil, err
	}
	var difference []byte
	if body.Type() != sqlite3.NULL {
		difference = body.RawBlob()
	}
	raw, err := rebuild(l.packer, plain, difference, &p.buf)
	if err != nil {
		return nil, err
	}
	defer recoverTo(&err)
	if parts, err = l.render(raw); err != nil {
		return map[string]JSON{}, nil // SQL shows NULL, as it does of the present
	}
	return parts, nil
}

func mapsKeys(m map[int64]bool) iter.Seq[int64] { return maps.Keys(m) }
