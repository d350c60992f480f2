package informers_test

import (
	"context"
	"strings"
	"testing"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/informers"
	"github.com/tarnproject/tarn/kube"
)

// A factory with a client does not know its server: its constructor reports that
// nothing will be kept on disk. WithDisk itself is tested in package ondisk, for all
// drop-ins.
func TestWithDiskNeedsAConfig(t *testing.T) {
	var told []string
	before := utilruntime.ErrorHandlers
	t.Cleanup(func() { utilruntime.ErrorHandlers = before })
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{func(_ context.Context, err error, _ string, _ ...any) { told = append(told, err.Error()) }}
	keep := func(kube.Origin) (tarn.Sink[any], error) {
		t.Error("something was to be kept")
		return nil, nil
	}
	informers.NewSharedInformerFactoryWithOptions(fake.NewClientset(), 0, informers.WithDisk(kube.Keeper{Sink: keep}))
	if len(told) != 1 || !strings.Contains(told[0], "make the factory from a rest.Config") {
		t.Errorf("told: %q", told)
	}
}
