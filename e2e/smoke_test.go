package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn"
)

// The cluster is what it says: of the right versions, and its pods are made by
// Deployments, bound and running.
func TestCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("the real server is left out with -short")
	}
	cluster := Start(t, Options{Controllers: true})
	cluster.StartKubelet()
	cluster.Pods(namespace, 50)

	version := cluster.Kubectl("version")
	for _, line := range []string{"Client Version: v1.36.3", "Server Version: v1.36.3"} {
		if !strings.Contains(version, line) {
			t.Errorf("kubectl version does not say %q:\n%s", line, version)
		}
	}

	lines := strings.Split(strings.TrimSpace(cluster.Kubectl("get", "pods", "-n", namespace, "--no-headers", "-o", "wide")), "\n")
	if len(lines) != 50 {
		t.Errorf("kubectl lists %d pods, not 50", len(lines))
	}
	for _, line := range lines {
		if !strings.Contains(line, "Running") || !strings.Contains(line, "node-") {
			t.Errorf("this pod does not run on a node: %s", line)
		}
	}

	list, err := cluster.Admin().CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range list.Items {
		if owner := metav1.GetControllerOf(&pod); owner == nil || owner.Kind != "ReplicaSet" {
			t.Errorf("%s is owned by %v, not by a ReplicaSet", pod.Name, owner)
		}
	}
}

// Every kind of copy comes to equal the server and follows it; a write of one's
// own can be waited for.
func TestSync(t *testing.T) { onEach(t, 50, synced) }

func synced(s *testEnv) {
	s.watchPods()
	s.converge(promptly)

	churn := s.server.StartChurn(namespace)
	s.server.WaitWrites(churn, 500)
	churn.Stop()
	s.server.Settle(namespace)
	s.converge(promptly)

	created, err := s.server.Admin().CoreV1().Pods(namespace).Create(s.Context(), barePod("mine"), metav1.CreateOptions{})
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(s.Context(), 10*time.Second)
	defer cancel()
	for _, subject := range s.ours() {
		if err := subject.replica.WaitFor(ctx, tarn.Version(created.ResourceVersion)); err != nil {
			s.Errorf("%s: %v", subject.name, err)
		}
		if _, ok := subject.live.contents()[keyOf(created)]; !ok {
			s.Errorf("%s: lacks a pod whose version it has reached", subject.name)
		}
	}
}
