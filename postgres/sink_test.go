package postgres

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"testing"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/kube/columns"
	"github.com/tarnproject/tarn/sinktest"
)

// plain is the codec of the suite's objects. Their text goes through base64, because the
// suite has U+0000 in it.
type plain struct{}

type plainObject struct {
	Key, Version, UID, Text string
}

func (plain) Columns() []columns.Column {
	return []columns.Column{{Name: "uid", Type: "TEXT"}, {Name: "resource_version", Type: "TEXT"}}
}

func (plain) Row(o sinktest.Object) (Row, error) {
	raw, err := json.Marshal(plainObject{string(o.Key), string(o.Version), o.UID, base64.StdEncoding.EncodeToString([]byte(o.Text))})
	return Row{Values: []any{o.UID, string(o.Version)}, Object: raw}, err
}

func (plain) Decode(raw []byte) (sinktest.Object, error) {
	var o plainObject
	if err := json.Unmarshal(raw, &o); err != nil {
		return sinktest.Object{}, err
	}
	text, err := base64.StdEncoding.DecodeString(o.Text)
	return sinktest.Object{Key: tarn.Key(o.Key), Version: tarn.Version(o.Version), UID: o.UID, Text: string(text)}, err
}

func TestConformance(t *testing.T) {
	for name, history := range map[string]bool{"the last state": false, "every state": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sinktest.Run(t, func(t *testing.T) sinktest.Subject {
				db := connect(t, database(t), Options{History: history})
				return sinktest.Subject{
					Open: func() tarn.Sink[sinktest.Object] { return NewSink(db, "things", "all", plain{}) },
					Gaps: func() ([]tarn.Gap, error) { return gapsOf(t.Context(), db) },
				}
			})
		})
	}
}

func gapsOf(ctx context.Context, db *DB) (all []tarn.Gap, err error) {
	rows, err := db.pool.Query(ctx, `SELECT section, from_version, to_version, cause FROM tarn_gaps ORDER BY id`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var section, from, to, cause string
		if err := rows.Scan(&section, &from, &to, &cause); err != nil {
			return nil, err
		}
		all = append(all, tarn.Gap{Section: section, From: tarn.Version(from), To: tarn.Version(to), Cause: tarn.GapCause(cause)})
	}
	return all, rows.Err()
}
