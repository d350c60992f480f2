package sqlite

import (
	"log/slog"

	"github.com/ncruces/go-sqlite3"
)

// Forget removes the collections that nobody has opened, and returns their names:
// what nobody follows any more would grow old, and a query could not tell.
func (db *DB) Forget() (names []string, err error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if err := db.usable(); err != nil {
		return nil, err
	}
	defer db.erase()
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
		db.log(slog.LevelInfo, "collections that nobody keeps any more were removed", "collections", names)
	}
	return names, nil
}

// erase moves the log into the file after something was dropped, and empties it. A
// reader may be in the way for now: then that is done when the file is closed.
func (db *DB) erase() {
	if !db.dropped || db.writer == nil {
		return
	}
	db.dropped = false
	if err := db.writer.Exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		db.log(slog.LevelWarn, "what was removed is in the log until the file is closed", "err", err)
	}
}
