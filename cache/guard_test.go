package cache

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tarnproject/tarn/internal/guard"
)

// writeInHandler runs an informer whose handler writes to its object.
func writeInHandler(ctx context.Context) {
	lw := &ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []corev1.ConfigMap{*numbered(7, 1)}}, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			return watch.NewFake(), nil
		},
	}
	informer := NewSharedIndexInformer(lw, &corev1.ConfigMap{}, 0, Indexers{})
	_, _ = informer.AddEventHandler(ResourceEventHandlerFuncs{AddFunc: func(obj any) {
		obj.(*corev1.ConfigMap).Name = "x"
	}})
	informer.RunWithContext(ctx)
}

// In guard mode a handler of an informer that writes to an object panics, and the panic names
// object and field, also if utilruntime is configured not to end the process.
func TestGuardedInformer(t *testing.T) {
	const child = "CACHE_TEST_WRITE"
	if mode := os.Getenv(child); mode != "" {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if mode == "continues" {
			utilruntime.ReallyCrash = false
			utilruntime.PanicHandlers = append(utilruntime.PanicHandlers, func(context.Context, any) { cancel() })
		}
		writeInHandler(ctx)
		return
	}
	if !guard.Supported {
		t.Skip("this system has no memory that can be made read-only")
	}
	for mode, ends := range map[string]bool{"ends": true, "continues": false} {
		t.Run(mode, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestGuardedInformer$")
			cmd.Env = append(os.Environ(), child+"="+mode, guard.Variable+"=1", "KUBE_FEATURE_WatchListClient=false", "TMPDIR="+t.TempDir())
			out, err := cmd.CombinedOutput()
			if want := "guard mode: a write to metadata.name of v1.ConfigMap a/c000007"; (err != nil) != ends || !strings.Contains(string(out), want) {
				t.Errorf("%v: the process does not say %q:\n%s", err, want, out)
			}
			if !strings.Contains(string(out), "cache.writeInHandler") {
				t.Errorf("the stack does not show the handler:\n%s", out)
			}
		})
	}
}
