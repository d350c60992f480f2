// Program fleet asks the questions of docs/sql.md about the pods of several clusters in one
// directory, and says what writing such a directory costs.
//
//	go run ./fleet -pods 100000 -clusters 10 -data pods.pb.zst
//
// To write the directory takes a minute or two; with -dir it is kept, and used by the next run.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

var (
	pods     = flag.Int("pods", 100_000, "how many pods there are")
	clusters = flag.Int("clusters", 10, "how many clusters they are in")
	updates  = flag.Int("updates", 20_000, "how many status updates are written")
	rounds   = flag.Int("rounds", 5, "how often each question is asked; the median counts")
	data     = flag.String("data", "../../shared/data/pods.pb.zst", "`file` with real pods")
	page     = flag.String("page", "../docs/sql.md", "the page with the questions")
	plans    = flag.Bool("plans", false, "print how SQLite answers each question")
	dir      = flag.String("dir", "", "where the directory is made and kept; a temporary one if empty")
)

func main() {
	flag.Parse()
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	path := *dir
	if path == "" {
		made, err := os.MkdirTemp("", "fleet")
		if err != nil {
			return err
		}
		defer os.RemoveAll(made)
		path = made
	}
	if _, err := os.Stat(filepath.Join(path, fileName)); os.IsNotExist(err) {
		if err := build(ctx, path); err != nil {
			return err
		}
	}
	return ask(ctx, path)
}
