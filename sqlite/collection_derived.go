package sqlite

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/ncruces/go-sqlite3"
)

// derive gives content that another version wrote the indexes and lists of this version, if
// the two versions differ in nothing else. It reports whether it did. Indexes and lists are
// computed from rows that stay, so nothing has to come from the source again.
//
// The stored checksum of indexed values then covers other columns, so the next update of each
// object writes its indexes and labels once more.
func (c *collection) derive(conn *sqlite3.Conn, row collectionRow) (done bool, err error) {
	had, has := row, row
	has.identity = c.identity
	before, after := layoutOf(had), layoutOf(has)
	if objectsOf(row.identity) != objectsOf(c.identity) || !slices.Equal(withoutDerived(row.id, before.made), withoutDerived(row.id, after.made)) {
		return false, nil
	}
	if err := checkSchema(conn, before.made); err != nil {
		return false, err
	}
	c.db.logEvent(slog.LevelInfo, "a collection on disk gets the indexes of this version", "collection", c.Name)
	for _, sql := range slices.Backward(before.made) { // a view before its table
		if kind, name := madeBy(sql); !slices.Contains(after.made, sql) {
			if err := conn.Exec(fmt.Sprintf("DROP %s %s", kind, quote(name))); err != nil {
				return false, err
			}
		}
	}
	for _, sql := range after.made {
		if slices.Contains(before.made, sql) {
			continue
		}
		list, isList := listOf(row.id, sql)
		var err error
		if isList {
			err = conn.Exec(list.removal(c.Name, row.id))
		}
		if err == nil {
			err = conn.Exec(sql)
		}
		if isList && err == nil {
			err = conn.Exec(list.fill(row.id))
		}
		if err != nil {
			return false, err
		}
	}
	c.state, c.label = row.state, row.label
	return true, c.writeRow(conn, "REPLACE INTO", row.state, row.label)
}

// withoutDerived returns the statements that make everything but indexes and lists.
func withoutDerived(id int64, made []string) []string {
	return slices.DeleteFunc(slices.Clone(made), func(sql string) bool {
		kind, _ := madeBy(sql)
		return kind == "INDEX" || strings.Contains(sql, quote(listTable(id, ""))[:len(listTable(id, ""))+1])
	})
}
