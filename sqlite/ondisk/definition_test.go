package ondisk

import (
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/sqlite"
)

// A custom resource may name its columns in any way, and the table can still be made.
func TestDefinedColumnsOfAnyName(t *testing.T) {
	var printed []any
	properties := map[string]any{}
	for _, name := range []string{
		"SQLite Version", "Tarn Status", "sqlite_x", strings.Repeat("long", 80), "Name", "key", "Object Spec", "1st", "über", "", "a'b\"c", "{name}",
		"select", "rowid", "x]", "--", "Phase", "PHASE", "phase",
	} {
		printed = append(printed, map[string]any{"name": name, "type": "string", "jsonPath": ".spec.x"})
		properties[name] = map[string]any{"type": "string"}
	}
	for version, described := range map[string]any{
		"v1": map[string]any{"name": "v1", "additionalPrinterColumns": printed},
		"v2": map[string]any{"name": "v2", "schema": map[string]any{"openAPIV3Schema": map[string]any{"properties": map[string]any{"spec": map[string]any{"properties": properties}}}}},
	} {
		definition := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"versions": []any{described}}}}
		columns := DefinedColumns(definition, version)
		if len(columns) < 5 {
			t.Errorf("%s: only %v is left", version, columns)
		}
		db, err := sqlite.Open(filepath.Join(t.TempDir(), "replica"), sqlite.Options{})
		must(t, err)
		client, err := kube.NewClient(&rest.Config{Host: "http://nowhere.test"})
		must(t, err)
		of := kube.OriginOf(client, kube.Collection{Resource: schema.GroupVersionResource{Group: "g.io", Version: version, Resource: "things"}, Object: unstructuredType})
		if _, err := Sink[*unstructured.Unstructured](db, of, WithColumns(columns...)); err != nil {
			t.Errorf("%s: %v", version, err)
		}
		must(t, db.Close())
	}
}

// A message whose fields are not all texts or messages is split into its fields too: two
// states of one field always differ in their sums.
func TestSumsOfAnyMessage(t *testing.T) {
	message := func(spec string) []byte {
		raw := []byte{1<<3 | 2, 1, 'm', 5 << 3, 0x96, 1, 6<<3 | 1, 1, 2, 3, 4, 5, 6, 7, 8, 7<<3 | 5, 1, 2, 3, 4}
		return append(append(raw, 2<<3|2, byte(len(spec))), spec...)
	}
	a, b := sumsOf(message("one")), sumsOf(message("two"))
	if a[2] == b[2] || a[2] == [16]byte{} {
		t.Errorf("two specs have the sums %x and %x", a[2], b[2])
	}
}
