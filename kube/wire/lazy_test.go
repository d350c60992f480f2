package wire_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn/kube/wire"
)

// message is built as protobuf builds its messages, and reads JSON by itself as they do.
type message struct {
	_    [0]sync.Mutex
	size int
	text string
}

func (m *message) UnmarshalJSON(raw []byte) error { return json.Unmarshal(raw, &m.text) }

// Size writes to the message, although it only reads it.
func (m *message) Size() int {
	m.size = len(m.text)
	return m.size
}

type withMessages struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		One    *message            `json:"one"`
		List   []message           `json:"list"`
		Map    map[string]*message `json:"map"`
		Shared []string            `json:"shared"`
	} `json:"spec"`
}

// Reading a message of protobuf writes to it. Objects do not share messages, and reading
// one is not reported as a stray write.
func TestMessagesAreNotShared(t *testing.T) {
	pool := wire.NewPool()
	decoder, err := wire.NewDecoder(reflect.TypeFor[*withMessages](), wire.Options{Pool: pool})
	if err != nil {
		t.Fatal(err)
	}
	decode := func(name string) *withMessages {
		text := `"a text that is long enough to be worth a part of its own in the pool"`
		object, err := decoder.JSON(fmt.Appendf(nil, `{"metadata":{"name":%q},"spec":{"one":%[2]s,"list":[%[2]s],"map":{"a":%[2]s},"shared":[%[2]s]}}`, name, text))
		if err != nil {
			t.Fatal(err)
		}
		return object.(*withMessages)
	}
	var objects []*withMessages
	for i := range 10 {
		objects = append(objects, decode(fmt.Sprint("a", i)))
	}
	a, b := objects[8].Spec, objects[9].Spec
	if a.One == b.One || &a.List[0] == &b.List[0] || a.Map["a"] == b.Map["a"] {
		t.Error("two objects share a message")
	}
	if &a.Shared[0] != &b.Shared[0] {
		t.Error("a list of texts beside messages is held twice")
	}
	for _, o := range objects {
		if o.Spec.One.Size() == 0 || o.Spec.List[0].Size() == 0 || o.Spec.Map["a"].Size() == 0 {
			t.Error("a message has no text")
		}
	}
	if pool.Verify(); pool.Stats().StrayWrites != 0 {
		t.Errorf("reading was taken for %d stray writes", pool.Stats().StrayWrites)
	}
}
