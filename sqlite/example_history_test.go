package sqlite_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/sqlite"
)

// With a history, SQL shows tables as they were, and every state of an object.
func ExampleMoment_Query() {
	dir, err := os.MkdirTemp("", "ships")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	dir = filepath.Join(dir, "replica")
	db, err := sqlite.Open(dir, sqlite.Options{History: sqlite.History{Age: 24 * time.Hour}})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	disk, err := sqlite.NewSink(db, sqlite.Collection{Name: "ships", Identity: "the harbour office"}, ships{})
	if err != nil {
		log.Fatal(err)
	}
	// A replica would commit it: tarn.Options.Sinks.
	morning := time.Now().Add(-time.Hour)
	for i, harbour := range []string{"Oslo", "Tromsø", "Svalbard"} {
		heard := morning.Add(time.Duration(i) * 10 * time.Minute)
		v := tarn.Version(fmt.Sprint(i + 1))
		if err := disk.Commit(context.Background(), tarn.Batch[Ship]{
			Whole:     i == 0,
			Changes:   []tarn.Change[Ship]{{Type: tarn.Update, Key: "fram", Object: Ship{"Fram", harbour}, Version: v, Heard: heard}},
			Positions: []tarn.Position{tarn.At(v)}, LastContact: heard,
		}); err != nil {
			log.Fatal(err)
		}
	}
	ask := func(at sqlite.Moment, sql string) {
		result, err := at.Query(context.Background(), dir, sql, sqlite.Limits{})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(result.Rows, len(result.Gaps), "gaps")
	}
	ask(sqlite.Moment{Time: morning.Add(15 * time.Minute)}, "SELECT key, harbour FROM ships")
	ask(sqlite.Moment{Version: "1"}, "SELECT key, harbour FROM ships")
	ask(sqlite.Moment{}, "SELECT operation, version, harbour FROM ships_history WHERE key = 'fram' ORDER BY seq")
	// Output:
	// [[fram Tromsø]] 0 gaps
	// [[fram Oslo]] 0 gaps
	// [[added 1 Oslo] [modified 2 Tromsø] [modified 3 Svalbard]] 0 gaps
}
