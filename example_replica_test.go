package tarn_test

import (
	"context"
	"fmt"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/memory"
)

// lakesAt is a source with one lake.
func lakesAt(level int) *Lakes {
	source := &Lakes{now: map[string]Lake{}, more: make(chan struct{})}
	source.Set("upper tarn", level)
	return source
}

// Printer is a store that keeps nothing: it only tells what it is given.
type Printer struct {
	after func(tarn.Version)
}

// Replace takes a whole state.
func (p Printer) Replace(items []tarn.Item[Lake], at tarn.Position) error {
	for _, item := range items {
		fmt.Println("at version", at.Version, "there is", item.Key, "at", item.Object.Level)
	}
	p.after(at.Version)
	return nil
}

// Apply takes changes.
func (p Printer) Apply(changes []tarn.Change[Lake], at tarn.Position) error {
	for _, change := range changes {
		fmt.Println("at version", at.Version, change.Key, "came to", change.Object.Level)
	}
	p.after(at.Version)
	return nil
}

// A reflector keeps any store equal to a source, here one that prints.
func ExampleReflector() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	source := lakesAt(12)
	store := Printer{after: func(v tarn.Version) {
		if v == "1" {
			source.Set("upper tarn", 17)
		} else {
			cancel()
		}
	}}
	reflector, err := tarn.NewReflector(source, store, tarn.Options[Lake]{
		Name: "lakes",
		Transform: func(lake Lake) (Lake, error) { // keep what you need, not what is sent
			lake.Level = lake.Level / 5 * 5
			return lake, nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(reflector.Run(ctx)) // until ctx ends
	// Output:
	// at version 1 there is upper tarn at 10
	// at version 2 upper tarn came to 15
	// context canceled
}

// Changes begins with the current content and continues with each change.
func ExampleReplica_Changes() {
	source := lakesAt(12)
	lakes, err := tarn.NewReplica(source, memory.New[Lake](), tarn.Options[Lake]{Name: "lakes"})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go lakes.Run(ctx)

	for change := range lakes.Changes(ctx) {
		switch change.Type {
		case tarn.Add:
			fmt.Println("there is", change.Key, "at", change.Object.Level, "initially:", change.Initial)
			if change.Initial {
				source.Set("upper tarn", 15)
			}
		case tarn.Update:
			fmt.Println("from", change.Old.Level, "to", change.Object.Level)
			source.Set("lower tarn", 3)
		}
		if change.Key == "lower tarn" {
			break // leaves nothing behind
		}
	}
	// Output:
	// there is upper tarn at 12 initially: true
	// from 12 to 15
	// there is lower tarn at 3 initially: false
}

// A subscriber's function is called for each change, one at a time, at its own
// pace; others do not wait for it.
func ExampleReplica_Subscribe() {
	source := lakesAt(12)
	lakes, err := tarn.NewReplica(source, memory.New[Lake](), tarn.Options[Lake]{Name: "lakes"})
	if err != nil {
		fmt.Println(err)
		return
	}
	subscription, err := lakes.Subscribe(func(change tarn.Change[Lake]) {
		fmt.Println(change.Key, change.Object.Level)
	}, tarn.SubscribeOptions{Name: "printer"})
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go lakes.Run(ctx)
	<-subscription.Synced() // the function has seen the first state
	fmt.Println("pending:", subscription.Lag().Pending)

	subscription.Close()
	<-subscription.Done() // the function will not be called again
	source.Set("upper tarn", 15)
	fmt.Println(lakes.WaitFor(ctx, "2"))
	// Output:
	// upper tarn 12
	// pending: 0
	// <nil>
}
