package protobuf

import (
	"reflect"
	"testing"

	"github.com/tarnproject/tarn/kube/wire/internal/pool"
)

// zigzag has a number whose sign is its last bit on the wire.
type zigzag struct {
	Number int32  `protobuf:"zigzag32,1,opt,name=number"`
	Text   string `protobuf:"bytes,2,opt,name=text"`
}

func (z *zigzag) Unmarshal(raw []byte) error {
	for i := 0; i < len(raw); {
		tag, at := varint(raw, i)
		if tag == 1<<3|wireVarint {
			var v uint64
			v, i = varint(raw, at)
			z.Number = int32(uint32(v)>>1) ^ -int32(v&1)
			continue
		}
		at, i = span(raw, at)
		z.Text = string(raw[at:i])
	}
	return nil
}

// A plan that was proven by messages without such a number must not read the first
// one that has it in its own way.
func TestProtobufZigzag(t *testing.T) {
	d := newProtobuf(t, reflect.TypeFor[zigzag](), pool.Options{Pool: pool.New()})
	for _, raw := range [][]byte{text(2, "a"), text(2, "b"), text(2, "c"), varintField(1, 4), varintField(1, 5)} {
		got, err := d.Decode(raw)
		want, _ := stockProtobuf(d.objectType, raw)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
}
