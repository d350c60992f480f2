package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tarnproject/tarn/bench/report"
	"github.com/tarnproject/tarn/internal/questions"
	"github.com/tarnproject/tarn/sqlite"
)

// limits are those of a statement here: answers have more rows than people want to see.
var limits = sqlite.Limits{Rows: 1 << 20, Bytes: 256 << 20, Time: time.Minute}

// ask asks each question, and prints how long it takes.
func ask(ctx context.Context, path string) error {
	asked, err := questions.On(*page)
	if err != nil {
		return err
	}
	known, err := names(ctx, path)
	if err != nil {
		return err
	}
	var rows [][]string
	for _, q := range asked {
		q.SQL = known.Replace(q.SQL)
		if *plans {
			if err := plan(ctx, path, q); err != nil {
				return err
			}
		}
		var wall, spent []float64
		n := 0
		for range *rounds {
			began, from := time.Now(), report.CPUTime()
			r, err := sqlite.Query(ctx, path, q.SQL, limits)
			if err != nil {
				return fmt.Errorf("%s: %w", q.Text, err)
			}
			wall = append(wall, time.Since(began).Seconds()*1e3)
			spent = append(spent, (report.CPUTime()-from).Seconds()*1e3)
			n = len(r.Rows)
		}
		rows = append(rows, []string{q.Text, fmt.Sprint(n), fmt.Sprintf("%.0f ms", median(wall)), fmt.Sprintf("%.0f ms", median(spent))})
	}
	report.Markdown(os.Stdout, []string{"question", "rows", "time", "CPU"}, rows)
	return nil
}

// names replaces the names of the page by those of a node and of a label that there are, and
// the join of nodes by that of docs/fleet.md.
func names(ctx context.Context, path string) (*strings.Replacer, error) {
	r, err := sqlite.Query(ctx, path, "SELECT (SELECT node FROM pods WHERE node IS NOT NULL LIMIT 1), name, value FROM pods_labels LIMIT 1", limits)
	if err != nil {
		return nil, err
	}
	if len(r.Rows) == 0 {
		return nil, errors.New("no pod has a label")
	}
	found := r.Rows[0]
	return strings.NewReplacer("'node-3'", fmt.Sprintf("'%s'", found[0]), "'app'", fmt.Sprintf("'%s'", found[1]), "'app-7'", fmt.Sprintf("'%s'", found[2]),
		"p.node = n.name AND", "p.node = n.name AND p.cluster = n.cluster AND"), nil
}

func plan(ctx context.Context, path string, q questions.Question) error {
	r, err := sqlite.Query(ctx, path, "EXPLAIN QUERY PLAN "+q.SQL, limits)
	if err != nil {
		return err
	}
	fmt.Println(q.Text)
	for _, row := range r.Rows {
		fmt.Println("   ", row[len(row)-1])
	}
	return nil
}

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}
