package memory_test

import (
	"errors"
	"fmt"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/memory"
)

type Pod struct{ Name, Node string }

func byNode(p Pod) ([]string, error) {
	if p.Node == "" {
		return nil, errors.New("not scheduled")
	}
	return []string{p.Node}, nil
}

func Example() {
	pods := memory.New[Pod]()
	_ = pods.AddIndexes(map[string]func(Pod) ([]string, error){"node": byNode})

	_ = pods.Replace([]tarn.Item[Pod]{
		{Meta: tarn.Meta{Key: "default/a"}, Object: Pod{"a", "n1"}},
		{Meta: tarn.Meta{Key: "default/b"}, Object: Pod{"b", "n2"}},
	}, tarn.At("10"))
	_ = pods.Apply([]tarn.Change[Pod]{
		{Type: tarn.Update, Key: "default/b", Object: Pod{"b", "n1"}},
	}, tarn.At("11"))

	keys, _ := pods.IndexKeys("node", "n1")
	fmt.Println(pods.Len(), "pods at", pods.Version(), "on n1:", keys)
	// Output: 2 pods at 11 on n1: [default/a default/b]
}

// A failing index function keeps the object out of that index, and nothing more.
func ExampleIndexError() {
	pods := memory.New[Pod]()
	_ = pods.AddIndexes(map[string]func(Pod) ([]string, error){"node": byNode})

	err := pods.Put("default/c", Pod{Name: "c"})
	for _, bad := range err.(tarn.ObjectErrors) {
		if index, ok := errors.AsType[*memory.IndexError](bad.Err); ok {
			fmt.Println(bad.Key, "is not in index", index.Index+":", index.Err)
		}
	}
	_, ok := pods.Get("default/c")
	fmt.Println("stored:", ok)
	// Output:
	// default/c is not in index node: not scheduled
	// stored: true
}

// Several writes as one step: no reader sees the pod in both places or in none.
func ExampleStore_Batch() {
	pods := memory.New[Pod]()
	_ = pods.Put("old/a", Pod{Name: "a"})

	_ = pods.Batch(func(w *memory.Writer[Pod]) {
		w.Remove("old/a")
		w.Put("new/a", Pod{Name: "a"})
		w.SetVersion("12")
	})
	fmt.Println(pods.Keys(), pods.Version())
	// Output: [new/a] 12
}
