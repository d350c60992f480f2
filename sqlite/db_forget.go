package sqlite

import (
	"log/slog"

	"github.com/ncruces/go-sqlite3"
)

// Forget removes the collections that are not open, and returns their names. Nothing
// updates them, and a query would not show that they are old.
func (db *DB) Forget() (names []string, err error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if err := db.usable(); err != nil {
		return nil, err
	}
	err = db.transact(func(conn *sqlite3.Conn) error {
		var left []*collection
		err := query(conn, "SELECT id, name FROM tarn_collections", func(row *sqlite3.Stmt) error {
			c := &collection{Collection: Collection{Name: row.ColumnText(1)}, db: db, id: row.ColumnInt64(0)}
			if _, open := db.collections[c.Name]; !open {
				left = append(left, c)
			}
			return nil
		})
		for _, c := range left {
			if err == nil {
				err = c.drop(conn)
			}
			names = append(names, c.Name)
		}
		return err
	})
	if err != nil {
		return nil, db.explain("remove old collections from", err)
	}
	if len(names) > 0 {
		db.erase()
		db.logEvent(slog.LevelInfo, "collections that are no longer open were removed", "collections", names)
	}
	return names, nil
}
