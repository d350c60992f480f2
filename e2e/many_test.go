package e2e

import (
	"flag"
	"testing"
	"time"
)

var manyPods = flag.Int("pods", 5000, "how many pods TestManyPods makes")

// Thousands of pods, made by Deployments, are copied by list and by stream, and
// followed while they change.
func TestManyPods(t *testing.T) {
	pods := *manyPods
	if testing.Short() {
		pods /= 10
	}
	onEachInTurn(t, pods, copiedInTurn)
}

func copiedInTurn(s *testEnv) {
	all := selection{namespace: namespace}
	for _, k := range podKinds(all) {
		began := time.Now()
		s.start([]kind{k}, s.server.Config(AdminToken), truthOfPods(s.server.Admin(), all))
		s.waitSynced()
		s.Logf("%s: synced after %v", k.name, time.Since(began).Round(time.Millisecond))
	}
	s.converge(promptly)
	for _, subject := range s.subjects {
		if streamed := subject.requests.beganWithStream(); streamed != subject.streams {
			s.Errorf("%s: began with a stream? %v, not %v", subject.name, streamed, subject.streams)
		}
	}
	for _, subject := range s.ours() {
		h := subject.replica.Health()
		if h.WatchListGivenUp || h.Failures > 0 || h.Lists["start"] != 1 {
			s.Errorf("%s: the first sync did not go smoothly: %s, lists %v", subject.name, h, h.Lists)
		}
	}

	churn := s.server.StartChurn(namespace)
	s.server.WaitWrites(churn, 1000)
	s.settle(churn)
	s.converge(promptly)
}
