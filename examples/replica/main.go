// Replica keeps a live copy of a collection of your own: no Kubernetes, no
// interface{}, only package tarn and a store. shop.go is the collection.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"slices"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/memory"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	shop := NewShop()
	shop.Stock("kettle", 3)
	shop.Stock("teapot", 7)

	trouble := make(chan error, 1)
	articles, err := tarn.NewReplica(shop, memory.New[Article](), tarn.Options[Article]{
		Name: "articles",
		OnError: func(_ context.Context, err error) {
			select {
			case trouble <- err:
			default: // somebody knows already
			}
		},
	})
	if err != nil {
		return err
	}

	// The replica runs until the context ends, and run returns after it.
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = articles.Run(ctx) // says that ctx was canceled
	}()
	defer func() {
		cancel()
		<-ended
	}()

	if err := articles.WaitSynced(ctx); err != nil {
		return err // it says why
	}
	printAll(out, articles)

	// Read your own write.
	written := shop.Stock("kettle", 2)
	if err := articles.WaitFor(ctx, written); err != nil {
		return err
	}
	kettle, _ := articles.Get("kettle")
	fmt.Fprintln(out, "one sold, left:", kettle.Pieces)

	// Follow what happens. A loop that is slow gets fewer, newer changes, never
	// a growing queue.
	for change := range articles.Changes(ctx) {
		switch {
		case change.Initial && change.Key == "kettle":
			shop.Stock("kettle", 1)
		case change.Type == tarn.Update:
			fmt.Fprintf(out, "%s: %d, then %d\n", change.Key, change.Old.Pieces, change.Object.Pieces)
			shop.Stock("kettle", 0)
		case change.Type == tarn.Delete:
			fmt.Fprintf(out, "%s: sold out\n", change.Key)
		}
		if change.Type == tarn.Delete {
			break
		}
	}

	// When the source is unreachable, reads answer with what is known, and Health says
	// that something is wrong, what, and since when.
	shop.Close("closed for lunch")
	select {
	case <-trouble:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	printAll(out, articles)
	fmt.Fprintln(out, "trouble:", articles.Health().Err)

	shop.Open()
	if err := articles.WaitFor(ctx, shop.Stock("kettle", 10)); err != nil {
		return err
	}
	printAll(out, articles)
	fmt.Fprintln(out, "trouble:", articles.Health().Err)
	return nil
}

// printAll prints one state of the whole collection.
func printAll(out io.Writer, articles *tarn.Replica[Article]) {
	var lines []string
	for _, a := range articles.All() {
		lines = append(lines, fmt.Sprintf("%d %s", a.Pieces, a.Name))
	}
	slices.Sort(lines)
	fmt.Fprintln(out, "on stock:", lines)
}
