package cache

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUndeltaStorePushesAfterEachChange(t *testing.T) {
	var pushed []string
	s := NewUndeltaStore(func(objects []any) { pushed = append(pushed, fmt.Sprint(objects)) }, queueObjectKey)
	for _, err := range []error{
		s.Add(queueObject{"a", 1}),
		s.Update(queueObject{"a", 2}),
		s.Delete(queueObject{"a", 3}),
		s.Replace([]any{queueObject{"b", 4}}, "4"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if s.Add(42) == nil || s.Replace([]any{42}, "5") == nil {
		t.Error("an object without a name was taken")
	}
	s.List()
	if _, exists, _ := s.GetByKey("b"); !exists {
		t.Error("the content is not that of the last replace")
	}
	if diff := cmp.Diff([]string{"[{a 1}]", "[{a 2}]", "[]", "[{b 4}]"}, pushed); diff != "" {
		t.Errorf("pushed (-want +got):\n%s", diff)
	}
}
