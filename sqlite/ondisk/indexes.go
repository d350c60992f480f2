package ondisk

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tarnproject/tarn/sqlite"
)

var pods = schema.GroupResource{Resource: "pods"}

// alongside holds the columns that an index of a column has too, so that common questions
// read the index and not the rows, which are ten times as long. None of them changes
// oftener than the indexed columns together: with a restart, a pod stops being ready.
var alongside = map[schema.GroupResource]map[string][]string{
	pods: {
		"phase":     {"namespace"},
		"node":      {"phase", "cpu_request"},
		"owner_uid": {"owner_kind", "ready", "restarts"},
	},
}

// lists are the columns whose elements have rows of their own.
var lists = map[schema.GroupResource][]sqlite.List{
	pods: {{Column: "images", Element: "image", Beside: "node"}},
}

// addIndexes adds the indexes of a resource's table, and its lists. In a copy of several
// clusters, a join by node needs the cluster, which is in the key.
func addIndexes(t *sqlite.Table, resource schema.GroupResource, indexed []string, fleet bool) {
	has := func(name string) bool {
		return slices.ContainsFunc(t.Columns, func(c sqlite.Column) bool { return c.Name == name })
	}
	t.Indexes = append(t.Indexes, []string{"namespace", "name"})
	for _, name := range append([]string{"uid", "owner_uid"}, indexed...) {
		index := []string{name}
		if more := alongside[resource][name]; !slices.ContainsFunc(more, func(name string) bool { return !has(name) }) {
			index = append(index, more...)
			if fleet && name == "node" {
				index = append(index, "key")
			}
		}
		t.Indexes = append(t.Indexes, index)
	}
	for _, l := range lists[resource] {
		if has(l.Column) && has(l.Beside) {
			t.Lists = append(t.Lists, l)
		}
	}
}
