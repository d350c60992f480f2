package cache

import (
	"errors"
	"strings"
	"testing"

	"github.com/tarnproject/tarn"
)

// An informer whose sink cannot be opened runs without it, and Health says why.
func TestKeepWithoutASink(t *testing.T) {
	for want, open := range map[string]func(ObjectTraits) (tarn.Sink[any], error){
		"nothing is kept on disk: no room":          func(ObjectTraits) (tarn.Sink[any], error) { return nil, errors.New("no room") },
		"nothing is kept on disk: there is no sink": func(ObjectTraits) (tarn.Sink[any], error) { return nil, nil },
	} {
		sinks := (&keep{open: open}).sinks()
		if len(sinks) != 1 {
			t.Fatalf("%q: there are %d sinks", want, len(sinks))
		}
		h := sinks[0].(tarn.DiskReporter).Disk()
		if h.Err == nil || !strings.Contains(h.Err.Error(), want) || h.ErrSince.IsZero() {
			t.Errorf("Health is %v, want %q", h, want)
		}
	}
	if sinks := (&keep{}).sinks(); sinks != nil {
		t.Errorf("an informer that is not kept has %v", sinks)
	}
}
