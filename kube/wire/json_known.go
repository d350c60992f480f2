package wire

import (
	"time"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tarnproject/tarn/kube/wire/internal/shape"
)

// known decodes into a type that has its own decoder, without that decoder where it
// is known what it does: those of the API machinery start the stock decoder anew
// for each value.
func (s *jsonState) known(p *jsonPlan, dst unsafe.Pointer, i int) int {
	end := jsonSkip(s.data, i, s.depth)
	if end == odd {
		return odd
	}
	raw := s.data[i:end]
	switch p.kind {
	case timeKind:
		if text, ok := jsonPlainText(raw); ok {
			t, err := time.Parse(time.RFC3339, text)
			if err != nil {
				return odd
			}
			(*metav1.Time)(dst).Time = t.Local()
			return end
		}
	case microTimeKind:
		if text, ok := jsonPlainText(raw); ok {
			t, err := time.Parse(metav1.RFC3339Micro, text)
			if err != nil {
				return odd
			}
			(*metav1.MicroTime)(dst).Time = t.Local()
			return end
		}
	case durationKind:
		if text, ok := jsonPlainText(raw); ok {
			d, err := time.ParseDuration(text)
			if err != nil {
				return odd
			}
			(*metav1.Duration)(dst).Duration = d
			return end
		}
	case intOrStringKind:
		x := (*intstr.IntOrString)(dst)
		if _, ok := jsonPlainText(raw); ok {
			*x = intstr.FromString(s.texts.string(raw[1 : len(raw)-1]))
			return end
		}
		if _, integer := jsonNumber(raw, 0); integer {
			if n, ok := jsonSmallInt(string(raw)); ok && n == int64(int32(n)) {
				*x = intstr.FromInt32(int32(n))
				return end
			}
		}
	case quantityKind:
		if (*resource.Quantity)(dst).UnmarshalJSON(raw) != nil {
			return odd
		}
		if shape.IsLazy(dst) {
			s.lazies++
		}
		return end
	case fieldsKind:
		if (*metav1.FieldsV1)(dst).UnmarshalJSON(raw) != nil {
			return odd
		}
		return end
	case rawKind:
		(*runtime.RawExtension)(dst).Raw = append(make([]byte, 0, len(raw)), raw...)
		return end
	}
	return s.foreign(p, dst, i, end)
}

// jsonPlainText returns the text of a string that is its own value, in raw's memory.
func jsonPlainText(raw []byte) (string, bool) {
	if raw[0] != '"' {
		return "", false
	}
	end, plain := jsonQuote(raw, 1)
	if !plain || end == 1 {
		return "", false
	}
	return unsafe.String(&raw[1], end-1), true
}
