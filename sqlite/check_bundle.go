package sqlite

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn"
)

// bundles compares the bundles of a collection with its rows.
func (r *Report) bundles(conn *sqlite3.Conn, row collectionRow, p *packer) error {
	var u unbundler
	err := query(conn, "SELECT span, body FROM tarn_bundles WHERE collection=? ORDER BY span", func(stored *sqlite3.Stmt) error {
		err := checkBundle(conn, row, p, stored.ColumnInt64(0), stored.ColumnRawBlob(1), &u)
		if err == nil || errors.Is(err, sqlite3.INTERRUPT) || !unreadable(err) {
			return err
		}
		r.found(row.name, "", "a bundle does not fit the objects; a start reads the objects one by one instead: "+withoutKind(err))
		return nil
	}, row.id)
	if unreadable(err) {
		r.found(row.name, "", "its bundles cannot be read: "+err.Error())
		return nil
	}
	return err
}

// checkBundle compares a bundle with the rows of its span.
func checkBundle(conn *sqlite3.Conn, row collectionRow, p *packer, span int64, stored []byte, u *unbundler) error {
	raw, err := p.unpackBundle(u, span, stored)
	if err != nil {
		return err
	}
	count := int64(0)
	err = readBundle(span, raw, func(o bundled) error {
		count++
		found := false
		err := query(conn, "SELECT sum, body FROM "+objectsTable(row.id)+" WHERE id=? AND key=?", func(object *sqlite3.Stmt) error {
			sum := sumOf(object.ColumnRawBlob(0))
			plain, err := p.unpack(tarn.Key(o.key), sum, object.ColumnRawBlob(1), nil)
			found = err == nil && sum == o.sum && bytes.Equal(plain, o.plain)
			return err
		}, o.id, o.key)
		if err == nil && !found {
			err = fmt.Errorf("%w of %s", errBadBundle, o.key)
		}
		return err
	})
	if err != nil {
		return err
	}
	n, err := number(conn, "SELECT count(*) FROM "+objectsTable(row.id)+" WHERE id >= ? AND id < ?", firstOf(span), firstOf(span+1))
	if err == nil && n != count {
		err = fmt.Errorf("%w has %d objects of %d", errBadBundle, count, n)
	}
	return err
}

// strayBundles counts the bundles that belong to no collection.
func (r *Report) strayBundles(conn *sqlite3.Conn) error {
	n, err := number(conn, "SELECT count(*) FROM tarn_bundles WHERE collection NOT IN (SELECT id FROM tarn_collections)")
	switch {
	case unreadable(err):
		return nil // the format has been checked
	case err != nil:
		return err
	case n > 0:
		r.found("", "", fmt.Sprintf("%d bundles belong to no collection", n))
	}
	return nil
}
