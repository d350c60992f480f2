package sqlite

import (
	"fmt"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn"
)

// collectionRow is the row of a collection in tarn_collections.
//
// It is always written and read as a whole, because it has a checksum: without one, a
// restart would resume from a version with a flipped bit.
type collectionRow struct {
	id             int64
	name, identity string
	state          state
	label          string
}

const collectionColumns = "id, name, identity, version, heard_ms, objects, whole, sum, positions, label, proof"

// values are those of the columns.
func (r collectionRow) values(keys *fileKeys) []any {
	s := r.state
	return []any{r.id, r.name, r.identity, string(s.version), s.lastContact.UnixMilli(), s.objects, s.completeness(), int64(s.sum), s.positions, r.label, r.proof(keys)}
}

func (r collectionRow) proof(keys *fileKeys) Sum {
	return keys.sums.sum(func(h *sumHash) {
		s := r.state
		h.text("collection")
		for _, text := range []string{r.name, r.identity, string(s.version), s.positions, r.label} {
			h.text(text)
		}
		for _, n := range []int64{r.id, s.lastContact.UnixMilli(), s.objects, s.completeness(), int64(s.sum)} {
			h.int(n)
		}
	})
}

// scanCollection reads a row of collectionColumns, and checks it.
func scanCollection(row *sqlite3.Stmt, keys *fileKeys) (collectionRow, error) {
	whole := row.ColumnInt64(6)
	r := collectionRow{
		id: row.ColumnInt64(0), name: row.ColumnText(1), identity: row.ColumnText(2),
		state: state{
			version: tarn.Version(row.ColumnText(3)), lastContact: time.UnixMilli(row.ColumnInt64(4)), objects: row.ColumnInt64(5),
			whole: whole != notWhole, incomplete: whole == wholeIncomplete, sum: uint64(row.ColumnInt64(7)), positions: row.ColumnText(8),
		},
		label: row.ColumnText(9),
	}
	if r.proof(keys) != sumOf(row.ColumnRawBlob(10)) {
		return r, fmt.Errorf("%w: the row of %q in tarn_collections", errBadRow, r.name)
	}
	return r, nil
}

// readCollection reads the row of a collection; the id is 0 if there is no row.
func readCollection(conn *sqlite3.Conn, keys *fileKeys, name string) (r collectionRow, err error) {
	err = query(conn, "SELECT "+collectionColumns+" FROM tarn_collections WHERE name=?", func(row *sqlite3.Stmt) (err error) {
		r, err = scanCollection(row, keys)
		return err
	}, name)
	return r, err
}
