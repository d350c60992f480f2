package e2e

import (
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn"
)

// recovery is how long a copy may take to find a server that is back: the pause
// between attempts grows to half a minute, and is stretched by as much at random.
const recovery = 2 * time.Minute

// apiserverKilled: the server crashes and comes back, again and again, in the
// middle of writes.
func apiserverKilled(s *testEnv) {
	s.mayExpire = true // a copy that was up to date at the crash resumes without a list
	s.watchPods()
	s.round()
	churn := s.server.StartChurn(namespace)
	for range 3 {
		s.server.WaitWrites(churn, 200)
		s.server.Kill()
		for _, subject := range s.ours() {
			// What was under way when the server died may still be read.
			subject.healthBecomes(s.T, 10*time.Second, "it fails, and has had no contact since", func(h tarn.Health) bool {
				return failing(h) && !h.LastContact.After(h.ErrSince)
			})
		}
		s.server.Start()
	}
	s.server.WaitWrites(churn, 200)
	s.round()
	s.settle(churn)
	s.converge(recovery)
	for _, subject := range s.ours() {
		if h := subject.replica.Health(); h.Rewinds > 0 {
			s.Errorf("%s: takes a restart for a rewind: %s", subject.name, h)
		}
	}
}

// etcdCompacted: etcd no longer has the history that a watch needs. While the watch
// is connected, the API server's watch cache still has it; after a disconnect and a
// restart of the API server, nothing has.
func etcdCompacted(s *testEnv) {
	s.watchPodsByProxy()
	s.round()
	churn := s.server.StartChurn(namespace)
	for range 5 {
		s.server.WaitWrites(churn, 50)
		s.server.Compact()
	}

	before := s.expirations()
	s.proxy.Refuse()
	for _, subject := range s.ours() {
		subject.healthBecomes(s.T, 10*time.Second, "it fails", failing)
	}
	s.roundUnseen()
	s.server.WaitWrites(churn, 200)
	s.roundUnseen()
	s.server.Kill()
	s.server.Compact()
	s.server.Start()
	s.proxy.Accept()
	s.server.WaitWrites(churn, 100)
	s.follow()
	s.round()
	s.settle(churn)
	s.converge(recovery)
	for name, now := range s.expirations() {
		if now == before[name] {
			s.Errorf("%s: did not read the state anew although its version had expired", name)
		}
	}
}

// expirations is how often each copy had to be read anew because its version was
// gone.
func (s *testEnv) expirations() map[string]int64 {
	counts := map[string]int64{}
	for _, subject := range s.ours() {
		counts[subject.name] = subject.replica.Health().Lists["expired"]
	}
	return counts
}

// etcdRestored: the server goes back to an older state. Objects created since are
// gone, deleted ones exist again, and versions are used a second time, for other
// content.
func etcdRestored(s *testEnv) {
	pods := s.server.Admin().CoreV1().Pods(namespace)
	if _, err := pods.Create(s.Context(), barePod("deleted-since"), metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	s.watchPods()
	s.round()
	restore, then := s.server.Snapshot(), s.server.Revision()
	s.round()

	churn := s.server.StartChurn(namespace)
	s.server.WaitWrites(churn, 1000)
	s.settle(churn)
	for range 2 {
		s.round()
	}
	// The churn may have been there first.
	if err := pods.Delete(s.Context(), "deleted-since", metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		s.Fatal(err)
	}
	if _, err := pods.Create(s.Context(), barePod("created-since"), metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	s.converge(promptly)
	now := s.server.Revision()
	restored := time.Now()

	restore()
	if back := s.server.Revision(); back >= now {
		s.Fatalf("the restored etcd is at %d, already past %d: this shows nothing", back, now)
	}
	s.Logf("versions went back from %d to %d", now, then)
	s.convergeOurs(recovery, "it waits in silence for a version that the server has not reached")
	for _, subject := range s.ours() {
		subject.healthShowed(s.T, restored, "the source went back", func(h tarn.Health) bool { return errors.Is(h.Err, tarn.ErrRewound) })
		subject.healthBecomes(s.T, 0, "there was one rewind", func(h tarn.Health) bool { return h.Rewinds == 1 })
		subject.healthBecomes(s.T, 0, fmt.Sprintf("the version is below %d", now), func(h tarn.Health) bool {
			return h.Version.OlderThan(tarn.Version(fmt.Sprint(now)))
		})
		s.presence(subject, "deleted-since", true)
		s.presence(subject, "created-since", false)
	}

	churn = s.server.StartChurn(namespace)
	s.server.WaitWrites(churn, 200)
	s.settle(churn)
	s.round()
	s.convergeOurs(recovery, "its copy is from before the restore")
}

func (s *testEnv) presence(subject *subject, pod string, want bool) {
	if _, have := subject.live.contents()[namespace+"/"+pod]; have != want {
		s.Errorf("%s: has %s? %v, not %v", subject.name, pod, have, want)
	}
}
