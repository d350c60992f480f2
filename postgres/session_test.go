package postgres

import (
	"strings"
	"testing"

	"github.com/tarnproject/tarn"
)

// compressionOf is how the object of a row is compressed.
func compressionOf(t *testing.T, db *DB, key tarn.Key) (kind string) {
	t.Helper()
	must(t, db.pool.QueryRow(t.Context(), `SELECT coalesce(pg_column_compression(object), 'none') FROM things WHERE key = $1`, string(key)).Scan(&kind))
	return kind
}

// Large objects are compressed by LZ4, unless somebody has chosen another compression.
func TestCompression(t *testing.T) {
	for _, c := range []struct{ name, parameter, want string }{
		{"nobody chose", "", "lz4"},
		{"somebody chose", "&default_toast_compression=pglz", "pglz"},
	} {
		t.Run(c.name, func(t *testing.T) {
			db := connect(t, database(t)+c.parameter, Options{})
			must(t, db.migrate(t.Context()))
			if c.want == "lz4" && !db.session.lz4 {
				t.Skip("this server has no LZ4")
			}
			s := opened(t, db)
			must(t, s.Commit(t.Context(), batch("1", thing("a", "1", strings.Repeat("large ", 5000)))))
			if kind := compressionOf(t, db, "a"); kind != c.want {
				t.Errorf("the object is compressed by %s, want %s", kind, c.want)
			}
		})
	}
}
