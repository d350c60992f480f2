package e2e

import (
	"time"

	"github.com/tarnproject/tarn"
)

// connectionsCut: the network resets connections all the time.
func connectionsCut(s *testEnv) {
	s.watchPodsByProxy()
	before := map[string]int64{}
	for _, subject := range s.ours() {
		before[subject.name] = subject.replica.Health().Watches
	}
	s.round()
	churn := s.server.StartChurn(namespace)
	for range 20 {
		s.server.WaitWrites(churn, 20)
		s.proxy.Cut()
	}
	for range 2 { // so that every copy has a watch again, and not only the state
		s.round()
	}
	s.proxy.Refuse()
	s.roundUnseen()
	s.roundUnseen()
	s.proxy.Accept()
	s.follow()
	s.round()
	s.settle(churn)
	s.converge(recovery)
	for _, subject := range s.ours() {
		if h := subject.replica.Health(); h.Watches == before[subject.name] {
			s.Errorf("%s: never watched anew although its connections were cut: %s", subject.name, h)
		}
	}
}

// pingFails is after how long client-go's HTTP/2 transport closes a connection
// on which nothing comes: it pings after 30 s and waits 15 s for the answer.
const pingFails = 45 * time.Second

// connectionsFrozen: connections stay open and carry nothing. Over HTTP/2 the
// client's pings detect that. Until then the failure is not visible, but Health
// shows the age of the copy.
func connectionsFrozen(s *testEnv) {
	s.watchPodsByProxy()
	s.round()
	churn := s.server.StartChurn(namespace)
	s.server.WaitWrites(churn, 100)
	s.proxy.Freeze()
	frozen := time.Now()
	s.roundUnseen()
	s.server.WaitWrites(churn, 500)
	s.roundUnseen()
	for _, subject := range s.ours() {
		h := subject.replica.Health()
		// A second for what was under way when the freeze began.
		silence := time.Since(frozen) - time.Second
		if silence < pingFails-10*time.Second && h.Age < silence {
			s.Errorf("%s: nothing can have come for %v, but it says: %s", subject.name, silence, h)
		}
	}
	s.settle(churn)
	s.converge(recovery)
}

// connectionsFrozenUnpinged: the same over HTTP/1.1, which has no pings, as behind
// a proxy that answers pings itself. Only missing bookmarks show the failure.
func connectionsFrozenUnpinged(s *testEnv) {
	config := s.proxy.Through(s.server.Config(AdminToken))
	config.NextProtos = []string{"http/1.1"}
	s.startPods(config)
	s.waitSynced()
	s.round()
	churn := s.server.StartChurn(namespace)
	s.server.WaitWrites(churn, 100)
	s.proxy.Freeze()
	s.roundUnseen()
	s.server.WaitWrites(churn, 300)
	s.roundUnseen()
	s.settle(churn)
	frozen := time.Now()
	for _, subject := range s.ours() {
		subject.healthBecomes(s.T, time.Until(frozen.Add(4*time.Minute)), "it has contact with the server again", func(h tarn.Health) bool {
			return h.LastContact.After(frozen)
		})
		// Health shows it only until the server has answered, which takes a moment. A
		// copy that has seen no bookmark yet, such as one that began with a list,
		// cannot distinguish a silent watch from a quiet collection, and reports no
		// error.
		if subject.streams && !subject.failures.includes(tarn.ErrSilent) {
			s.Errorf("%s: its error handler did not get the error of a silent watch", subject.name)
		}
	}
	s.convergeOurs(recovery, "it does not detect silent watches")
}
