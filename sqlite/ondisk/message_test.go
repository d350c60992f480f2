package ondisk

import (
	"bytes"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// The appended bytes are those that the object itself marshals to, for every size.
func TestAppendMessage(t *testing.T) {
	for _, size := range []int{0, 100, len(room{}) - 40, len(room{}), len(room{}) + 1, 1 << 20, 3} {
		m := &corev1.ConfigMap{Data: map[string]string{"a": strings.Repeat("x", size)}}
		want, err := m.Marshal()
		must(t, err)
		for _, buf := range [][]byte{nil, []byte("before"), append(make([]byte, 0, 2<<20), "before"...)} {
			got, err := appendMessage(buf, m)
			if err != nil || !bytes.Equal(got, append([]byte(string(buf)), want...)) {
				t.Errorf("%d bytes behind %q: %v, %d bytes, want %d", size, buf, err, len(got), len(buf)+len(want))
			}
		}
	}
}

// brokenMessage panics wherever it is written.
type brokenMessage struct{}

func (brokenMessage) Size() int                                { return 1 }
func (brokenMessage) MarshalToSizedBuffer([]byte) (int, error) { panic("broken") }

// A panic for another reason than the size is not recovered here; the store turns it
// into an error of the object.
func TestAppendBrokenMessage(t *testing.T) {
	defer func() {
		if v := recover(); v != "broken" {
			t.Errorf("the panic is %v", v)
		}
	}()
	_, _ = appendMessage(nil, brokenMessage{})
}
