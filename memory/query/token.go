package query

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/fieldpath"
)

// cursor is where a page ended, for the token of the next one. It names the last
// object, not a number of objects, so that adds and deletes in between shift
// nothing.
type cursor struct {
	query  uint64
	values []fieldpath.Value
	key    tarn.Key
}

const cursorFormat = 1

// String is the token: the format, the query's fingerprint, the number of sort
// values and their codes, the key, and a checksum.
func (c cursor) String() string {
	b := binary.BigEndian.AppendUint64([]byte{cursorFormat}, c.query)
	b = append(b, byte(len(c.values)))
	for _, v := range c.values {
		b = v.AppendOrdered(b)
	}
	b = append(b, c.key...)
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b)))
}

var errToken = errors.New("the continue token is damaged or not one of ours: request the first page again, without a token")

func parseCursor(token string) (*cursor, error) {
	b, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(b) < 14 || b[0] != cursorFormat {
		return nil, errToken
	}
	b, sum := b[:len(b)-4], binary.BigEndian.Uint32(b[len(b)-4:])
	if crc32.ChecksumIEEE(b) != sum {
		return nil, errToken
	}
	c := &cursor{query: binary.BigEndian.Uint64(b[1:])}
	rest := string(b[10:])
	for range b[9] {
		var v fieldpath.Value
		if v, rest, err = fieldpath.ReadOrdered(rest); err != nil {
			return nil, errToken
		}
		c.values = append(c.values, v)
	}
	c.key = tarn.Key(rest)
	return c, nil
}

// token reads the query's token, nil if it has none.
func (q *Query) token() (*cursor, error) {
	if q.after == "" || q.err != nil {
		return nil, nil
	}
	c, err := parseCursor(q.after)
	if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	if c.query != q.fingerprint() || len(c.values) != len(q.sort) {
		return nil, errors.New("query: the continue token belongs to another query: conditions and order must stay the same from page to page")
	}
	return c, nil
}
