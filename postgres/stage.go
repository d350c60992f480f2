package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/kube/columns"
)

// staging is a batch on its way into the temporary table. Changes are encoded while they
// are copied, one at a time: a first state is never in memory twice.
type staging[T any] struct {
	codec Codec[T]
	table table
	batch tarn.Batch[T]
	// first and last have the place of the first and the last change of each key.
	first, last map[tarn.Key]int
	// refused is why a change cannot be written, by its place.
	refused map[int]error
	now     time.Time
}

func newStaging[T any](s *Sink[T], b tarn.Batch[T]) *staging[T] {
	st := &staging[T]{codec: s.codec, table: s.table, batch: b, first: map[tarn.Key]int{}, last: map[tarn.Key]int{}, refused: map[int]error{}, now: time.Now()}
	for i, c := range b.Changes {
		if _, known := st.first[c.Key]; !known {
			st.first[c.Key] = i
		}
		st.last[c.Key] = i
	}
	return st
}

// problems names the objects whose last state in the batch was refused. One that is deleted
// is gone all the same: only its history lacks the last state, and says so.
func (st *staging[T]) problems() error {
	var all tarn.ObjectErrors
	for i, err := range st.refused {
		if c := st.batch.Changes[i]; st.last[c.Key] == i && c.Type != tarn.Delete {
			all = append(all, tarn.BadObject{Key: c.Key, Version: c.Version, Err: err, Since: st.now})
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// copy fills the temporary table with all changes.
func (st *staging[T]) copy(ctx context.Context, tx pgx.Tx) error {
	return st.copyRange(ctx, tx, 0, len(st.batch.Changes))
}

func (st *staging[T]) copyRange(ctx context.Context, tx pgx.Tx, from, to int) error {
	staged := st.table.staged()
	if _, err := tx.Exec(ctx, staged.createStaged()); err != nil {
		return err
	}
	if from == to {
		return nil
	}
	fields := make([]string, len(staged.columns))
	for i, c := range staged.columns {
		fields[i] = c.Name
	}
	at := from
	_, err := tx.CopyFrom(ctx, pgx.Identifier{"pg_temp", staged.name}, fields, pgx.CopyFromFunc(func() ([]any, error) {
		if at == to {
			return nil, nil
		}
		at++
		return st.row(at - 1), nil
	}))
	return err
}

// row is a change for the temporary table, in the order of [table.staged].
func (st *staging[T]) row(i int) []any {
	c := st.batch.Changes[i]
	values := make([]any, 0, len(order)+len(st.table.columns)+len(occurrence))
	values = append(values, int64(i), st.first[c.Key] == i, st.last[c.Key] == i, storableKey(c.Key),
		operation(c.Type), storable(string(c.Version)), st.epoch(c.Key), c.Type == tarn.Delete && c.Missed, c.Rewound, st.heard(c))
	row, err := st.encode(i, c)
	if err != nil {
		values = append(values, storable(err.Error()))
		return append(values, make([]any, len(st.table.own())+len(content))...)
	}
	values = append(values, nil)
	return append(values, row...)
}

// encode returns the values of the resource's columns, with labels and object behind them.
func (st *staging[T]) encode(i int, c tarn.Change[T]) (values []any, err error) {
	if st.refused[i] != nil {
		return nil, st.refused[i]
	}
	defer func() {
		if err != nil {
			st.refused[i] = err
		}
	}()
	own := st.table.own()
	values = make([]any, len(own)+len(content))
	if storableKey(c.Key) != string(c.Key) {
		return nil, errors.New("its key is not a text that Postgres can have, or is too long for an index")
	}
	if c.Type == tarn.Delete && isZero(c.Object) {
		return values, nil
	}
	row, err := st.codec.Row(c.Object)
	if err != nil {
		return nil, err
	}
	if hasNUL(row.Object) {
		return nil, errors.New("it has the character U+0000, which Postgres cannot store in jsonb or text")
	}
	for i, v := range row.Values {
		values[i] = converted(v, own[i].Type)
	}
	values[len(own)], values[len(own)+1] = row.Labels, row.Object
	if len(row.Labels) == 0 {
		values[len(own)] = map[string]string{}
	}
	return values, nil
}

// heard is when the copy took a change.
func (st *staging[T]) heard(c tarn.Change[T]) time.Time {
	switch {
	case !c.Heard.IsZero():
		return c.Heard
	case !st.batch.LastContact.IsZero():
		return st.batch.LastContact
	}
	return st.now
}

// epoch is that of the section that a key belongs to: sections are named by namespaces.
func (st *staging[T]) epoch(key tarn.Key) string {
	if len(st.batch.Positions) == 1 {
		return st.batch.Positions[0].Epoch
	}
	namespace, _, _ := strings.Cut(string(key), "/")
	for _, p := range st.batch.Positions {
		if p.Section == namespace {
			return p.Epoch
		}
	}
	return ""
}

func operation(t tarn.ChangeType) string {
	switch t {
	case tarn.Add:
		return "added"
	case tarn.Delete:
		return "deleted"
	}
	return "modified"
}

// hasNUL says whether a JSON text has U+0000 in one of its strings, where it can stand only
// as an escape.
func hasNUL(raw []byte) bool {
	for at := 0; ; {
		i := bytes.Index(raw[at:], []byte(`\u0000`))
		if i < 0 {
			return false
		}
		at += i
		backslashes := 1
		for at-backslashes >= 0 && raw[at-backslashes] == '\\' {
			backslashes++
		}
		if backslashes%2 == 1 {
			return true
		}
		at++
	}
}

// storable is a text as Postgres can have it.
func storable(s string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", "\uFFFD"), "\uFFFD")
}

// longestKey is how long a key may be: with the name of the cluster and of the resource it
// must fit into a row of an index, which Postgres bounds at 2,704 bytes.
const longestKey = 2000

// storableKey is a key as Postgres can have it. One that it cannot have is named by a text of
// its own in the tables about it, so that it is not mistaken for another key.
func storableKey(key tarn.Key) string {
	s := string(key)
	if len(s) <= longestKey && utf8.ValidString(s) && !strings.ContainsRune(s, 0) {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	return fmt.Sprintf("%.200q (sha256 %x)", s, sum)
}

// converted is a value for a column's type. One that does not fit is NULL: the object has it
// all the same.
func converted(v any, kind string) any {
	switch kind {
	case bigint:
		switch v := v.(type) {
		case int64:
			return v
		case bool:
			if v {
				return int64(1)
			}
			return int64(0)
		case float64:
			if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
				return int64(v)
			}
		}
		return nil
	case double:
		switch v := v.(type) {
		case float64:
			return v
		case int64:
			return float64(v)
		}
		return nil
	case jsonb:
		if raw, ok := v.(columns.JSON); ok {
			return []byte(raw)
		}
		return nil
	}
	switch v := v.(type) {
	case nil:
		return nil
	case string:
		return storable(v)
	case columns.JSON:
		return storable(string(v))
	}
	return fmt.Sprint(v)
}
