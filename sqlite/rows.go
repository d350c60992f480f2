package sqlite

import (
	"bytes"
	"slices"

	"github.com/ncruces/go-sqlite3"
)

// tableStmts write what SQL sees of a collection.
type tableStmts struct {
	insert, update, touch, remove *sqlite3.Stmt
	label, unlabel                *sqlite3.Stmt
	// wide and removeWide have one for each wide column.
	wide, removeWide []*sqlite3.Stmt
	// columns are the wide ones' places.
	columns []int
}

func (p *prepared) stmts(name string, id int64, prepare func(sql string) *sqlite3.Stmt) tableStmts {
	s := tableStmts{
		insert: prepare(p.insert(id)), update: prepare(p.update(id, false)), touch: prepare(p.update(id, true)),
		label: prepare(p.label(name)), unlabel: prepare(removeFrom(labelsTable(name))), remove: prepare(removeFrom(rowsTable(id))),
		columns: p.wide,
	}
	for _, i := range p.wide {
		s.wide = append(s.wide, prepare(p.putWide(id, p.Columns[i].Name)))
		s.removeWide = append(s.removeWide, prepare(removeFrom(wideTable(id, p.Columns[i].Name))))
	}
	return s
}

func (s *tableStmts) all() []*sqlite3.Stmt {
	return slices.Concat([]*sqlite3.Stmt{s.insert, s.update, s.touch, s.remove, s.label, s.unlabel}, s.wide, s.removeWide)
}

// rowChange is what happens to a row.
type rowChange uint8

const (
	rowAdded rowChange = iota
	rowUpdated
	// rowTouched changes nothing that the row is found by.
	rowTouched
	rowGone
)

// write writes a row. before are the sums of the wide values that are stored.
func (s *tableStmts) write(how rowChange, id int64, e entry, before []byte) error {
	if how == rowGone {
		return s.removeRow(id)
	}
	if err := s.writeWide(id, e, before); err != nil {
		return err
	}
	args := append(make([]any, 0, 3+len(e.row.Values)), id, string(e.key), e.labels)
	for _, v := range e.row.Values {
		if _, wide := v.(Part); wide {
			v = nil // no statement here has a use for it
		}
		args = append(args, v)
	}
	switch how {
	case rowTouched:
		return runWith(s.touch, args)
	case rowAdded:
		if err := runWith(s.insert, args); err != nil {
			return err
		}
	default:
		if err := first(run(s.unlabel, noRow, id), func() error { return runWith(s.update, args) }); err != nil {
			return err
		}
	}
	for name, value := range e.row.Labels {
		if err := run(s.label, noRow, id, name, value); err != nil {
			return err
		}
	}
	return nil
}

// writeWide makes and writes the wide values that are not the same as before.
func (s *tableStmts) writeWide(id int64, e entry, before []byte) error {
	const size = len(Part{}.Sum)
	for n, i := range s.columns {
		from := n * size
		if len(before) >= from+size && bytes.Equal(before[from:from+size], e.parts[from:from+size]) {
			continue
		}
		value, err := e.row.Values[i].(Part).make()
		if err != nil {
			value = nil // the object itself is kept, and SQL sees that this is missing
		}
		if err := run(s.wide[n], noRow, id, value); err != nil {
			return err
		}
	}
	return nil
}

func (s *tableStmts) removeRow(id int64) error {
	err := first(run(s.unlabel, noRow, id), func() error { return run(s.remove, noRow, id) })
	for _, stmt := range s.removeWide {
		err = first(err, func() error { return run(stmt, noRow, id) })
	}
	return err
}

// make gives the value for SQL.
func (p Part) make() (value any, err error) {
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

// runWith runs a statement with as many values as it has a use for.
func runWith(stmt *sqlite3.Stmt, args []any) error {
	return run(stmt, noRow, args[:min(len(args), stmt.BindCount())]...)
}

// first goes on until something fails.
func first(err error, next ...func() error) error {
	for _, do := range next {
		if err != nil {
			return err
		}
		err = do()
	}
	return err
}
