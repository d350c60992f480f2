package reasons_test

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/reasons"
)

var pods = schema.GroupResource{Resource: "pods"}

func isEOF(err error) bool { return errors.Is(err, io.EOF) }

// tooLarge is how servers say that a version is ahead of them, now and before
// 1.19.
func tooLarge(cause metav1.CauseType, message string) error {
	err := apierrors.NewTimeoutError("the version is too large", 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: cause, Message: message}}
	return err
}

func TestClassify(t *testing.T) {
	for name, test := range map[string]struct {
		err   error
		want  tarn.Reason
		after time.Duration
	}{
		"expired":                {apierrors.NewResourceExpired("compacted"), tarn.ReasonExpired, 0},
		"too new":                {tooLarge(metav1.CauseTypeResourceVersionTooLarge, ""), tarn.ReasonTooNew, 0},
		"too new, in words":      {tooLarge("", "Too large resource version"), tarn.ReasonTooNew, 0},
		"another timeout":        {tooLarge("", "something else"), tarn.ReasonUnknown, time.Second},
		"refused":                {&url.Error{Op: "Get", URL: "/", Err: syscall.ECONNREFUSED}, tarn.ReasonRefused, 0},
		"busy":                   {apierrors.NewTooManyRequests("later", 7), tarn.ReasonBusy, 7 * time.Second},
		"lost":                   {fmt.Errorf("reading: %w", io.EOF), tarn.ReasonLost, 0},
		"internal":               {apierrors.NewInternalError(errors.New("oops")), tarn.ReasonInternal, 0},
		"forbidden":              {apierrors.NewForbidden(pods, "", errors.New("no")), tarn.ReasonUnknown, 0},
		"wrapped, still expired": {fmt.Errorf("list: %w", apierrors.NewResourceExpired("compacted")), tarn.ReasonExpired, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := reasons.Classify(test.err, isEOF)
			if tarn.ReasonOf(got) != test.want || tarn.RetryAfter(got) != test.after {
				t.Errorf("%v, after %v; want %v, after %v", tarn.ReasonOf(got), tarn.RetryAfter(got), test.want, test.after)
			}
			if !errors.Is(got, test.err) {
				t.Errorf("the error itself is lost: %v", got)
			}
		})
	}
	if err := reasons.Classify(nil, isEOF); err != nil {
		t.Error(err)
	}
}

func TestRefusesWatchList(t *testing.T) {
	for err, want := range map[error]bool{
		apierrors.NewBadRequest("unknown parameter"):               true,
		apierrors.NewInvalid(schema.GroupKind{Kind: "x"}, "", nil): true,
		apierrors.NewForbidden(pods, "", errors.New("no")):         false,
		io.EOF: false,
	} {
		if got := reasons.RefusesWatchList(err); got != want {
			t.Errorf("%v: %v", err, got)
		}
	}
}

// A source over the API wraps its errors so that the engine knows what to do.
func ExampleClassify() {
	err := reasons.Classify(apierrors.NewTooManyRequests("too many requests", 5), isEOF)
	fmt.Println(tarn.ReasonOf(err), tarn.RetryAfter(err))
	// Output: busy 5s
}
