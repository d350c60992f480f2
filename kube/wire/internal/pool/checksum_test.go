package pool

import (
	"reflect"
	"testing"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tarnproject/tarn/kube/wire/internal/shape"
)

// sumOf is the checksum of a map.
func sumOf[M any](m M) checksum {
	sum, _ := checksumOf(shape.RefTo(reflect.TypeFor[M]()), shape.Memory{Ptr: *(*unsafe.Pointer)(unsafe.Pointer(&m)), N: 1})
	return sum
}

// The checksum of a map does not depend on the order of its entries, and changes with each of
// them.
func TestChecksumOfMaps(t *testing.T) {
	type name string
	quantities := map[name]resource.Quantity{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi"), "disk": resource.MustParse("0.5n")}
	nested := map[int]map[string]*int64{1: {"a": new(int64)}, 2: {"b": new(int64)}, 3: nil}
	for what, c := range map[string]struct {
		sum   func() checksum
		write func()
	}{
		"a quantity": {func() checksum { return sumOf(quantities) }, func() { q := quantities["disk"]; q.Set(7); quantities["disk"] = q }},
		"a key":      {func() checksum { return sumOf(quantities) }, func() { quantities["disc"] = quantities["disk"]; delete(quantities, "disk") }},
		"a number":   {func() checksum { return sumOf(nested) }, func() { *nested[2]["b"] = 1 }},
	} {
		first := c.sum()
		for range 20 {
			if got := c.sum(); got != first {
				t.Fatalf("%s: the checksum is %x, and then %x", what, first, got)
			}
		}
		if c.write(); c.sum() == first {
			t.Errorf("%s: the checksum does not show a write", what)
		}
	}
}

// Hashing a map of quantities allocates nothing, except for reflect's iterator. It is done for
// each part of a first state.
func TestChecksumOfMapsReusesMemory(t *testing.T) {
	quantities := map[string]resource.Quantity{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")}
	labels := map[string]string{"app": "a", "team": "b"}
	for what, c := range map[string]struct {
		sum  func() checksum
		most float64
	}{
		"quantities": {func() checksum { return sumOf(quantities) }, 1},
		"labels":     {func() checksum { return sumOf(labels) }, 0},
	} {
		if n := testing.AllocsPerRun(100, func() { c.sum() }); n > c.most {
			t.Errorf("%s: %v allocations, want at most %v", what, n, c.most)
		}
	}
}
