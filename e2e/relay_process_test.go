package e2e

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// The process of a relay with a directory is killed and started again, twice, while
// pods change. Each time it continues from its directory, without a list, and a client that
// resumes at a version from before the first kill is sent everything since.
func TestRelayProcessKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("the real server is left out with -short")
	}
	cluster := Start(t, Options{Controllers: true})
	cluster.StartKubelet()
	cluster.Pods(namespace, 50)
	address, dir := fmt.Sprintf("127.0.0.1:%d", freePorts(t, 1)[0]), t.TempDir()
	relay := startRelayProgram(t, cluster, address, "--dir", dir)
	defer func() { relay.kill() }()
	before, err := relay.Admin().CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		t.Fatal(err)
	}
	churn := cluster.StartChurn(namespace)
	for range 2 {
		cluster.WaitWrites(churn, 50)
		relay.kill()
		cluster.WaitWrites(churn, 20) // nobody sees them as they happen
		relay = startRelayProgram(t, cluster, address, "--dir", dir)
		if lists := relay.figure(t, "tarn_lists_total"); lists != 0 {
			t.Errorf("the relay listed %v times after a kill", lists)
		}
	}
	s := &testEnv{T: t, server: cluster, on: realServer}
	s.settle(churn)
	view := map[string]string{}
	for _, pod := range before.Items {
		view[pod.Name] = pod.ResourceVersion
	}
	s.resume(relay.Config(AdminToken), before.ResourceVersion, view)
}

// resume watches pods from a version on, until the view, versions by name, is what the
// server has.
func (s *testEnv) resume(config *rest.Config, version string, view map[string]string) {
	s.Helper()
	want := map[string]string{}
	list, err := s.server.Admin().CoreV1().Pods(namespace).List(s.Context(), metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	for _, pod := range list.Items {
		want[pod.Name] = pod.ResourceVersion
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		s.Fatal(err)
	}
	seconds := int64(promptly / time.Second)
	events, err := client.CoreV1().Pods(namespace).Watch(s.Context(), metav1.ListOptions{ResourceVersion: version, TimeoutSeconds: &seconds})
	if err != nil {
		s.Fatal(err)
	}
	defer events.Stop()
	for e := range events.ResultChan() {
		pod, ok := e.Object.(*corev1.Pod)
		switch {
		case !ok:
			s.Fatalf("the watch from %s: %v", version, e.Object)
		case e.Type == watch.Deleted:
			delete(view, pod.Name)
		default:
			view[pod.Name] = pod.ResourceVersion
		}
		if maps.Equal(view, want) {
			return
		}
	}
	s.Errorf("not equal after %v: %s", promptly, cmp.Diff(want, view))
}

// figure is the sum of a metric over its labels; 0 if it has not been counted yet.
func (r *RelayProgram) figure(t *testing.T, name string) (sum float64) {
	t.Helper()
	response, err := http.Get("http://" + r.metrics + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^`+name+`(?:\{.*\})? (\S+)$`).FindAllSubmatch(body, -1)
	if !bytes.Contains(body, []byte("tarn_relay_ready 1")) {
		t.Fatalf("the relay is not ready:\n%s", body)
	}
	for _, line := range found {
		value, err := strconv.ParseFloat(string(line[1]), 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += value
	}
	return sum
}
