package verify

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/tarnproject/tarn/internal/render"
)

// Each part of two objects is read once, however deep they are nested, and the
// report is short.
func TestFieldsOfDeepObjects(t *testing.T) {
	deep := func(keys int) any {
		level := map[string]any{}
		for i := range keys {
			level[fmt.Sprintf("k%05d", i)] = int64(i)
		}
		for range 9000 {
			level = map[string]any{"a": level}
		}
		return map[string]any{"spec": level}
	}
	a, b := deep(10_000), deep(10_001)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	found := differingFields(a, b, 10)
	runtime.ReadMemStats(&after)
	if len(found) != 1 || len(found[0]) > render.MaxPath+len("…") {
		t.Errorf("%d fields", len(found))
	}
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 10 {
		t.Errorf("it took %d MiB", took)
	}
	if found := differingFields(a, deep(10_000), 10); len(found) != 0 {
		t.Errorf("equal objects differ in %q", found)
	}
}
