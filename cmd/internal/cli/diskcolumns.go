package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tarnproject/tarn/cmd/internal/mirror"
	"github.com/tarnproject/tarn/sqlite"
	"github.com/tarnproject/tarn/sqlite/ondisk"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// diskColumns makes rows of objects that come from a directory. A server makes its own rows,
// because only it knows the columns of its kinds. Here the columns are those of SQL.
type diskColumns struct {
	definitions []metav1.TableColumnDefinition
	// places are the places of the columns in the result of read.
	places []int
	read   func(mirror.Object) []any
	// at is the time at which ages are shown, zero for now.
	at time.Time
	// cluster says that the second column is the name of the cluster.
	cluster bool
}

// clusterHeading is the heading of the column with the name of the cluster.
const clusterHeading = "Cluster"

// addCluster adds the column with the name of the cluster after the name: printers treat the
// first column as the name.
func (c *diskColumns) addCluster() {
	c.cluster = true
	c.definitions = slices.Insert(c.definitions, 1, metav1.TableColumnDefinition{Name: clusterHeading, Type: "string"})
}

// usual are the columns that are shown without -o wide, for a resource with more columns than
// fit.
var usual = map[string][]string{
	"pods":  {"status", "ready_containers", "containers", "restarts", "node"},
	"nodes": {"ready", "roles", "kubelet_version", "unschedulable"},
}

// few is the number of columns of other resources that are shown.
const few = 5

func newDiskColumns(r mirror.Resource, columns []ondisk.Column, read func(mirror.Object) []any) *diskColumns {
	c := &diskColumns{read: read}
	c.definitions = []metav1.TableColumnDefinition{{Name: "Name", Type: "string", Format: "name"}}
	add := func(i int, priority int32) {
		c.places = append(c.places, i)
		c.definitions = append(c.definitions, metav1.TableColumnDefinition{Name: strings.ReplaceAll(columns[i].Name, "_", " "), Type: "string", Priority: priority})
	}
	first, chosen := usual[r.Name()]
	for _, name := range first {
		if i := slices.IndexFunc(columns, func(c ondisk.Column) bool { return c.Name == name }); i >= 0 {
			add(i, 0)
		}
	}
	for i, column := range columns {
		switch {
		case slices.Contains(first, column.Name):
		case chosen || i >= few:
			add(i, 1)
		default:
			add(i, 0)
		}
	}
	c.definitions = append(c.definitions, metav1.TableColumnDefinition{Name: ageColumn, Type: "string"})
	return c
}

// cells returns the cells of an object.
func (c *diskColumns) cells(object mirror.Object, cluster string) []any {
	cells := []any{object.GetName()}
	if c.cluster {
		cells = append(cells, cluster)
	}
	values := c.read(object)
	for _, i := range c.places {
		cells = append(cells, cellText(values[i]))
	}
	return append(cells, ageAt(object.GetCreationTimestamp().Time, c.at))
}

func cellText(v any) string {
	switch v := v.(type) {
	case nil:
		return "<none>"
	case sqlite.JSON:
		return string(v)
	case bool:
		if v {
			return "true"
		}
		return "false"
	}
	return fmt.Sprint(v)
}
