package e2e

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The origin of a relay crashes again and again in the middle of writes. Clients of the
// relay do not notice: their watches stay open, and nobody lists.
func TestRelayOriginKilled(t *testing.T) {
	onOne(t, 100, func(s *testEnv) {
		s.throughRelay(s.server.Config(AdminToken))
		s.watchPods()
		began := s.asked()
		churn := s.server.StartChurn(namespace)
		for range 3 {
			s.server.WaitWrites(churn, 200)
			s.server.Kill()
			s.server.Start()
		}
		s.server.WaitWrites(churn, 200)
		s.settle(churn)
		s.converge(recovery)
		s.nobodyListed(began)
	})
}

// The origin forgets the versions that a relay has missed, so that the relay has to read
// everything. It bridges the gap for its clients: their watches stay open, and nobody lists.
func TestRelayOriginCompacted(t *testing.T) {
	onOne(t, 100, func(s *testEnv) {
		proxy := s.server.Proxy()
		s.throughRelay(proxy.Through(s.server.Config(AdminToken)))
		s.watchPods()
		began := s.asked()
		churn := s.server.StartChurn(namespace)
		for range 2 {
			s.server.WaitWrites(churn, 100)
			proxy.Refuse()
			s.server.WaitWrites(churn, 200)
			s.server.Kill()
			s.server.Compact()
			s.server.Start()
			proxy.Accept()
		}
		s.server.WaitWrites(churn, 100)
		s.settle(churn)
		s.converge(recovery)
		s.nobodyListed(began)
		health := s.server.(*Relayed).relay.Stats()[0].Health
		if health.Lists["expired"] == 0 {
			s.Errorf("the relay did not lose its version, and this shows nothing: %s, lists %v", health, health.Lists)
		}
	})
}

// The origin goes back to an older state. The relay finds out and ends all watches, so that
// client-go's informers, which would wait in silence for the version that they had, are
// right again too.
func TestRelayOriginRestored(t *testing.T) {
	onOne(t, 100, func(s *testEnv) {
		s.throughRelay(s.server.Config(AdminToken))
		pods := s.server.Admin().CoreV1().Pods(namespace)
		if _, err := pods.Create(s.Context(), barePod("deleted-since"), metav1.CreateOptions{}); err != nil {
			s.Fatal(err)
		}
		s.watchPods()
		restore := s.server.Snapshot()
		churn := s.server.StartChurn(namespace)
		s.server.WaitWrites(churn, 1000)
		s.settle(churn)
		// The churn may have been there first.
		if err := pods.Delete(s.Context(), "deleted-since", metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			s.Fatal(err)
		}
		if _, err := pods.Create(s.Context(), barePod("created-since"), metav1.CreateOptions{}); err != nil {
			s.Fatal(err)
		}
		s.converge(promptly)
		now, restored := s.server.Revision(), time.Now()
		restore()
		if back := s.server.Revision(); back >= now {
			s.Fatalf("the restored origin is at %d, already past %d: this shows nothing", back, now)
		}
		s.converge(recovery)
		s.Logf("all copies are right %v after the restore", time.Since(restored).Round(time.Second))
		for _, subject := range s.subjects {
			s.presence(subject, "deleted-since", true)
			s.presence(subject, "created-since", false)
		}
		churn = s.server.StartChurn(namespace)
		s.server.WaitWrites(churn, 200)
		s.settle(churn)
		s.converge(recovery)
	})
}

// asked is how many requests each copy has sent.
func (s *testEnv) asked() []int {
	counts := make([]int, len(s.subjects))
	for i, subject := range s.subjects {
		counts[i] = subject.requests.count()
	}
	return counts
}

// nobodyListed checks that since then no copy has asked for more than watches.
func (s *testEnv) nobodyListed(since []int) {
	s.Helper()
	for i, subject := range s.subjects {
		for _, q := range subject.requests.since(since[i]) {
			if q.Get("watch") == "" || q.Get("sendInitialEvents") != "" {
				s.Errorf("%s: it listed: %v", subject.name, q)
			}
		}
	}
}
