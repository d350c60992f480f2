package sqlite

import (
	"strings"

	"github.com/ncruces/go-sqlite3"
)

// dropOther removes content of another identity. The log stays if only the columns differ, as
// after a change to the definition of a custom resource, or if the log can be rewritten.
func (c *collection) dropOther(conn *sqlite3.Conn, row collectionRow) error {
	log, found, err := readLog(conn, c.db.keys, c.id, c.Name)
	if err != nil {
		return err
	}
	if found && c.history.on() {
		if c.keepLog, err = c.keepsLog(conn, row); err != nil {
			return err
		}
	}
	if c.keepLog {
		c.prior = row.state
		return c.dropContent(conn)
	}
	if found {
		c.droppedLog = &log
	}
	return c.drop(conn)
}

// objectsOf is the part of an identity that says which objects it has, in which encoding:
// all but the tables for SQL.
func objectsOf(identity string) string {
	objects, _, _ := strings.Cut(identity, "\nCREATE ")
	return objects
}

// drop removes the collection with its log.
func (c *collection) drop(conn *sqlite3.Conn) error {
	return first(c.dropLog(conn), c.dropContent(conn))
}

// dropContent removes the content. Its bytes are overwritten in the file, and stay in the
// log until [DB.erase].
func (c *collection) dropContent(conn *sqlite3.Conn) error {
	// The tables may be those of another version, with other columns.
	var drops []string
	err := query(conn, `SELECT type, name FROM sqlite_schema WHERE type = 'view' AND (name IN (?1, ?2) OR instr(sql, ?7))
		OR type = 'table' AND (name IN (?3, ?4, ?5) OR substr(name, 1, length(?6)) = ?6 OR substr(name, 1, length(?8)) = ?8)`,
		func(row *sqlite3.Stmt) error {
			drops = append(drops, "DROP "+row.ColumnText(0)+" "+quote(row.ColumnText(1)))
			return nil
		}, c.Name, labelsView(c.Name), c.objectsTable(), labelsTable(c.id), rowsTable(c.id), wideTable(c.id, ""), ` FROM "`+listTable(c.id, ""), listTable(c.id, ""))
	if err != nil {
		return err
	}
	for _, sql := range drops {
		if err := conn.Exec(sql); err != nil {
			return err
		}
	}
	if err := c.unbundleAll(conn); err != nil {
		return err
	}
	if !c.keepLog { // the log needs it too
		if err := execute(conn, "DELETE FROM tarn_dictionaries WHERE id=?", c.id); err != nil {
			return err
		}
	}
	return execute(conn, "DELETE FROM tarn_collections WHERE id=?", c.id)
}
