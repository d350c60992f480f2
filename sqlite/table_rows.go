package sqlite

import (
	"bytes"
	"fmt"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn"
)

// tableStmts holds the statements that write the tables for SQL.
type tableStmts struct {
	insert, remove *sqlite3.Stmt
	label, unlabel *sqlite3.Stmt
	updates        rowUpdates
	sums           rowSums
	// plain holds the columns of a row beside its labels.
	plain []int
	// wide has the wide columns.
	wide  []wideColumn
	lists []listStmts
}

// wideColumn writes the values of a wide column.
type wideColumn interface {
	put(conn *sqlite3.Conn, id int64, key tarn.Key, part WideValue, value any) error
	remove(id int64) error
	all() []*sqlite3.Stmt
	// place is the column's.
	place() int
}

func (p *prepared) stmts(id int64, sums rowSums, prepare func(sql string) *sqlite3.Stmt) tableStmts {
	s := tableStmts{
		insert: prepare(p.insert(id)), remove: prepare(removeFrom(rowsTable(id))), updates: p.updates(id, prepare), sums: sums,
		label: prepare(p.label(id)), unlabel: prepare(removeFrom(labelsTable(id))),
	}
	for i, c := range p.Columns {
		if !c.apart() {
			s.plain = append(s.plain, i)
		}
	}
	for _, i := range p.wide {
		if c := p.Columns[i]; c.Shared {
			s.wide = append(s.wide, newSharedColumn(id, i, c.Name, sums, prepare))
		} else {
			s.wide = append(s.wide, newOwnColumn(id, i, c.Name, sums, prepare))
		}
	}
	for _, l := range p.Lists {
		s.lists = append(s.lists, p.listStmts(id, l, prepare))
	}
	return s
}

func (s *tableStmts) all() []*sqlite3.Stmt {
	all := append(s.updates.all(), s.insert, s.remove, s.label, s.unlabel)
	for _, w := range s.wide {
		all = append(all, w.all()...)
	}
	for i := range s.lists {
		all = append(all, s.lists[i].all()...)
	}
	return all
}

// rowSums computes the checksums of a collection's rows for SQL. Each includes the
// object's: a row that is good in itself may still be an older one.
type rowSums struct {
	sums  *summer
	owner string
}

// row returns the checksum of a row's plain values.
func (r rowSums) row(key tarn.Key, object Sum, labels any, values []any) Sum {
	return r.sums.sum(func(h *sumHash) {
		r.begin(h, "row", key)
		h.bytes(object[:])
		h.value(labels)
		for _, v := range values {
			h.value(v)
		}
	})
}

// wide returns the checksum of a row's own wide value. part is the codec's sum of that value.
func (r rowSums) wide(key tarn.Key, column string, part Sum, value any) Sum {
	return r.sums.sum(func(h *sumHash) {
		r.begin(h, "wide", key)
		h.text(column)
		h.bytes(part[:])
		h.value(value)
	})
}

// shared returns the checksum of a reference to a value that rows share. That value has its
// own sum.
func (r rowSums) shared(key tarn.Key, column string, part Sum, value []byte, words []any) Sum {
	return r.sums.sum(func(h *sumHash) {
		r.begin(h, "shared", key)
		h.text(column)
		h.bytes(part[:])
		h.bytes(value)
		for _, word := range words {
			h.value(word)
		}
	})
}

// value returns the checksum of a value that rows share, by which the value is found.
func (r rowSums) value(raw []byte) []byte {
	sum := r.sums.sum(func(h *sumHash) {
		h.text("value")
		h.bytes(raw)
	})
	return sum[:]
}

func (r rowSums) begin(h *sumHash, what string, key tarn.Key) {
	h.text(what)
	h.text(r.owner)
	h.text(string(key))
}

// ownColumn is a wide column in which each row has a value of its own.
type ownColumn struct {
	at           int
	name         string
	sums         rowSums
	write, erase *sqlite3.Stmt
}

func newOwnColumn(id int64, at int, name string, sums rowSums, prepare func(sql string) *sqlite3.Stmt) *ownColumn {
	table := wideTable(id, name)
	return &ownColumn{at, name, sums, prepare(fmt.Sprintf("REPLACE INTO %s (id, value, tarn_sum) VALUES (?1, ?2, ?3)", quote(table))), prepare(removeFrom(table))}
}

func (c *ownColumn) put(_ *sqlite3.Conn, id int64, key tarn.Key, part WideValue, value any) error {
	return run(c.write, noRow, id, value, c.sums.wide(key, c.name, part.Sum, value))
}

func (c *ownColumn) remove(id int64) error { return run(c.erase, noRow, id) }
func (c *ownColumn) all() []*sqlite3.Stmt  { return []*sqlite3.Stmt{c.write, c.erase} }
func (c *ownColumn) place() int            { return c.at }

// rowChange is what happens to a row.
type rowChange uint8

const (
	rowAdded rowChange = iota
	rowUpdated
	// rowTouched changes no indexed value.
	rowTouched
	rowGone
)

// write writes a row over another. An update writes only what has changed.
func (s *tableStmts) write(conn *sqlite3.Conn, how rowChange, id int64, e entry, before storedRow) error {
	if how == rowGone {
		return s.removeRow(id)
	}
	if err := s.writeWide(conn, id, e, before.parts); err != nil {
		return err
	}
	values := make([]any, len(s.plain))
	for n, i := range s.plain {
		values[n] = e.row.Values[i]
	}
	sum := s.sums.row(e.key, e.sum, e.row.labelsJSON(), values)
	if how == rowAdded {
		return s.addRow(id, e, sum)
	}
	parts := rowParts(0)
	if how == rowUpdated {
		var err error
		if parts = before.changed; !before.compared {
			parts, err = s.updates.changed(id, &e.row)
		}
		if err != nil {
			return err
		}
		if err := s.writeLists(how, parts, id, e.row.Values); err != nil {
			return err
		}
	}
	update, err := s.updates.of(conn, parts)
	if err != nil {
		return err
	}
	if err := update.run(id, sum, &e.row); err != nil || !update.labels {
		return err
	}
	return inTurn(run(s.unlabel, noRow, id), func() error { return s.addLabels(id, e.row.Labels) })
}

func (s *tableStmts) addRow(id int64, e entry, sum Sum) error {
	args := append(make([]any, 0, 4+len(e.row.Values)), id, string(e.key), e.row.labelsJSON(), sum)
	for _, v := range e.row.Values {
		if _, wide := v.(WideValue); wide {
			v = nil // the statement does not use it
		}
		args = append(args, v)
	}
	return inTurn(s.writeLists(rowAdded, allParts, id, e.row.Values),
		func() error { return runWith(s.insert, args) },
		func() error { return s.addLabels(id, e.row.Labels) })
}

func (s *tableStmts) addLabels(id int64, labels map[string]string) error {
	for name, value := range labels {
		if err := run(s.label, noRow, id, name, value); err != nil {
			return err
		}
	}
	return nil
}

// writeLists writes the lists that parts belong to. It must run before the row is written:
// the row still says what the lists have.
func (s *tableStmts) writeLists(how rowChange, parts rowParts, id int64, next []any) error {
	for i := range s.lists {
		if parts&s.lists[i].parts == 0 {
			continue
		}
		if err := s.lists[i].write(how, id, next); err != nil {
			return err
		}
	}
	return nil
}

// writeWide computes and writes the wide values that have changed. before holds the sums of
// the stored ones.
func (s *tableStmts) writeWide(conn *sqlite3.Conn, id int64, e entry, before []byte) error {
	const size = len(WideValue{}.Sum)
	for n, w := range s.wide {
		from := n * size
		if len(before) >= from+size && bytes.Equal(before[from:from+size], e.parts[from:from+size]) {
			continue
		}
		part := e.row.Values[w.place()].(WideValue)
		value, err := part.make()
		if err != nil {
			value = nil // the object itself is stored, and SQL shows NULL
		}
		if err := w.put(conn, id, e.key, part, value); err != nil {
			return err
		}
	}
	return nil
}

func (s *tableStmts) removeRow(id int64) error {
	if err := s.writeLists(rowGone, allParts, id, nil); err != nil {
		return err
	}
	err := inTurn(run(s.unlabel, noRow, id), func() error { return run(s.remove, noRow, id) })
	for _, w := range s.wide {
		err = inTurn(err, func() error { return w.remove(id) })
	}
	return err
}

// make returns the value for SQL.
func (p WideValue) make() (value any, err error) {
	if p.Make == nil {
		return nil, nil
	}
	defer recoverTo(&err)
	raw, err := p.Make()
	if err != nil || raw == nil {
		return nil, err
	}
	return raw, nil
}

// runWith runs a statement with as many values as it has parameters.
func runWith(stmt *sqlite3.Stmt, args []any) error {
	return run(stmt, noRow, args[:min(len(args), stmt.BindCount())]...)
}

// inTurn runs steps until one fails.
func inTurn(err error, next ...func() error) error {
	for _, do := range next {
		if err != nil {
			return err
		}
		err = do()
	}
	return err
}
