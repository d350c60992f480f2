package json

import (
	"time"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tarnproject/tarn/kube/wire/internal/shape"
)

// known decodes into a type with its own decoder, without calling that decoder
// where its result is known: the decoders of the API machinery start the stock
// decoder again for each value.
func (s *reader) known(p *plan, dst unsafe.Pointer, i int) int {
	end := skipValue(s.data, i, s.depth)
	if end == irregular {
		return irregular
	}
	raw := s.data[i:end]
	switch p.kind {
	case timeKind:
		if text, ok := plainText(raw); ok {
			t, err := time.Parse(time.RFC3339, text)
			if err != nil {
				return irregular
			}
			(*metav1.Time)(dst).Time = t.Local()
			return end
		}
	case microTimeKind:
		if text, ok := plainText(raw); ok {
			t, err := time.Parse(metav1.RFC3339Micro, text)
			if err != nil {
				return irregular
			}
			(*metav1.MicroTime)(dst).Time = t.Local()
			return end
		}
	case durationKind:
		if text, ok := plainText(raw); ok {
			d, err := time.ParseDuration(text)
			if err != nil {
				return irregular
			}
			(*metav1.Duration)(dst).Duration = d
			return end
		}
	case intOrStringKind:
		x := (*intstr.IntOrString)(dst)
		if _, ok := plainText(raw); ok {
			*x = intstr.FromString(s.texts.string(raw[1 : len(raw)-1]))
			return end
		}
		if _, integer := scanNumber(raw, 0); integer {
			if n, ok := smallInt(string(raw)); ok && n == int64(int32(n)) {
				*x = intstr.FromInt32(int32(n))
				return end
			}
		}
	case quantityKind:
		if (*resource.Quantity)(dst).UnmarshalJSON(raw) != nil {
			return irregular
		}
		if shape.IsLazy(dst) {
			s.lazies++
		}
		return end
	case fieldsKind:
		if (*metav1.FieldsV1)(dst).UnmarshalJSON(raw) != nil {
			return irregular
		}
		return end
	case rawKind:
		(*runtime.RawExtension)(dst).Raw = append(make([]byte, 0, len(raw)), raw...)
		return end
	}
	return s.ownDecoder(p, dst, i, end)
}

// plainText returns the text of a string that is its own value, in raw's memory.
func plainText(raw []byte) (string, bool) {
	if raw[0] != '"' {
		return "", false
	}
	end, plain := findQuote(raw, 1)
	if !plain || end == 1 {
		return "", false
	}
	return unsafe.String(&raw[1], end-1), true
}
