package sqlite_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/sqlite"
)

type Ship struct {
	Name, Harbour string
}

// ships writes ships as JSON, and shows them to SQL.
type ships struct{}

func (ships) Append(buf []byte, s Ship) ([]byte, error) {
	raw, err := json.Marshal(s)
	return append(buf, raw...), err
}

func (ships) Decode(raw []byte) (s Ship, err error) { return s, json.Unmarshal(raw, &s) }

func (ships) Schema() string { return "ships 1" }

func (ships) Table() sqlite.Table {
	return sqlite.Table{Columns: []sqlite.Column{{Name: "harbour", Type: "TEXT"}}, Indexes: [][]string{{"harbour"}}}
}

func (ships) Row(s Ship, _ []byte) (sqlite.Row, error) {
	return sqlite.Row{Values: []any{s.Harbour}, Labels: map[string]string{"flag": "no"}}, nil
}

// A store that is behind one in memory outlives the process, and answers SQL.
func Example() {
	dir, err := os.MkdirTemp("", "ships")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	dir = filepath.Join(dir, "replica")

	db, err := sqlite.Open(dir, sqlite.Options{})
	if err != nil {
		log.Fatal(err)
	}
	disk, err := sqlite.NewStore(db, sqlite.Collection{Name: "ships", Identity: "the harbour office"}, ships{})
	if err != nil {
		log.Fatal(err)
	}
	// A replica would write it: tarn.NewReplica(source, disk, …).
	if err := disk.Apply([]tarn.Change[Ship]{
		{Type: tarn.Add, Key: "fram", Object: Ship{"Fram", "Oslo"}},
		{Type: tarn.Add, Key: "gjøa", Object: Ship{"Gjøa", "Oslo"}},
		{Type: tarn.Add, Key: "vega", Object: Ship{"Vega", "Karlskrona"}},
	}, tarn.At("3")); err != nil {
		log.Fatal(err)
	}
	if err := db.Close(); err != nil {
		log.Fatal(err)
	}

	result, err := sqlite.Query(context.Background(), dir, "SELECT harbour, count(*) AS ships FROM ships GROUP BY harbour", sqlite.Limits{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Columns)
	for _, row := range result.Rows {
		fmt.Println(row...)
	}
	for _, table := range result.Read {
		fmt.Println(table.Name, "at version", table.Version, "complete:", table.Complete)
	}
	_, err = sqlite.Query(context.Background(), dir, "DELETE FROM ships_labels", sqlite.Limits{})
	fmt.Println(err)
	// Output:
	// [harbour ships]
	// Karlskrona 1
	// Oslo 2
	// ships at version 3 complete: true
	// sqlite: only reading is allowed here: sqlite3: SQL logic error: cannot modify ships_labels because it is a view
}
