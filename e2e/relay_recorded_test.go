package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A relay answers as the real server does, in the conversations by which the embedded
// server is compared with it: lists at all kinds of versions, watches, writes, mistakes.
func TestRelayRecorded(t *testing.T) {
	if testing.Short() {
		t.Skip("the real server is left out with -short")
	}
	cluster := Start(t, Options{})
	relay := startRelay(t, cluster.Config(AdminToken),
		corev1.SchemeGroupVersion.WithResource("pods"),
		corev1.SchemeGroupVersion.WithResource("configmaps"),
		corev1.SchemeGroupVersion.WithResource("resourcequotas"),
		networkingv1.SchemeGroupVersion.WithResource("ingressclasses"),
	)
	// The record has names in the place of versions, so these must not be numbers that mean
	// something else, such as 201.
	cluster.Namespace("versions")
	names := cluster.Admin().CoreV1().Namespaces()
	for cluster.Revision() < 1000 {
		if _, err := names.Patch(t.Context(), "versions", types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"at":"%d"}}}`, time.Now().UnixNano()), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	compare := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-run", "TestRecorded", "-timeout", (20 * time.Minute).String(), "./apiserver")
	compare.Dir = ".."
	compare.Env = append(os.Environ(), "COMPARE_URL=https://"+relay.Address(), "RECORD_TOKEN="+AdminToken)
	if output, err := compare.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
	for _, s := range relay.relay.Stats() {
		t.Logf("%s: %d answers from the copy, %d by the origin", s.Resource.Resource, s.Served, s.Forwarded)
		if s.Resource.Resource == "configmaps" && s.Served < 20 {
			t.Error("that is too little to have shown anything")
		}
	}
}
