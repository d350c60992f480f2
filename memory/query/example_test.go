package query_test

import (
	"fmt"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/memory"
	"github.com/tarnproject/tarn/memory/query"
)

// Fields make conditions, and conditions make a query. The store explains how it
// would answer.
func Example() {
	type job struct {
		Queue string `json:"queue"`
		Tries int    `json:"tries"`
	}
	jobs := memory.New[job]()
	_ = jobs.AddIndex("queue", memory.IndexPath[job]("queue"))
	for key, j := range map[tarn.Key]job{"a": {"mail", 3}, "b": {"mail", 1}, "c": {"print", 5}, "d": {"mail", 7}} {
		_ = jobs.Put(key, j)
	}

	failing := query.Where(query.Field("queue").Is("mail"), query.Field("tries").AtLeast(2)).Sort("-tries")
	page, err := jobs.Select(failing)
	fmt.Println(page.Keys, err)
	plan, _ := jobs.Explain(failing)
	fmt.Println(plan)

	// The same as a selector, and a mistake in one.
	n, _ := jobs.Count(query.Where().Fields("queue=mail,tries>=2"))
	fmt.Println(n)
	_, err = jobs.Select(query.Where().Fields("quee=mail"))
	fmt.Println(err)
	// Output:
	// [d a] <nil>
	// index queue: [queue in ("mail")]; 3 of 4 examined; filter [tries >= 2]; sort by [-tries]
	// 2
	// query: field path "quee": query_test.job has no "quee"; the nearest is "queue"
}
