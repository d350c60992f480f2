package e2e

import (
	"time"

	"github.com/tarnproject/tarn"
)

// connectionsCut: the network resets connections all the time.
func connectionsCut(s *stage) {
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
	for range 2 { // so that everybody has a watch again, and not only the state
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
// client's pings find that out; until then nobody can know, but the age of the
// copy tells how much it may have missed.
func connectionsFrozen(s *stage) {
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

// connectionsFrozenUnpinged: the same over HTTP/1.1, where nothing below us
// pings, as behind a proxy that answers pings itself. Only the absence of
// bookmarks tells.
func connectionsFrozenUnpinged(s *stage) {
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
		subject.healthBecomes(s.T, time.Until(frozen.Add(4*time.Minute)), "it heard the server again", func(h tarn.Health) bool {
			return h.LastContact.After(frozen)
		})
		// Health says it only until the server has answered, which takes a
		// moment. A copy that has seen no bookmark yet, as those that began with a
		// list, cannot tell silence from quiet, and makes no noise about it.
		if subject.streams && !subject.failures.had(tarn.ErrSilent) {
			s.Errorf("%s: its error handler was not told that the watch fell silent", subject.name)
		}
	}
	s.convergeOurs(recovery, "it has no notion of silence")
}
