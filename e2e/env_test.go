package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/client-go/rest"
)

// namespace is where the scenarios' pods are.
const namespace = "stage"

// promptly is how soon a copy must be right if nothing fails. It takes
// milliseconds, but the machine may be small.
const promptly = 30 * time.Second

// testEnv is a server with pods, and a copy of them of every kind.
type testEnv struct {
	*testing.T
	on       string // the name of the server
	server   Server
	proxy    *Proxy
	subjects []*subject
	truth    truth
	rounds   int // of the scripted pods
	// peersLost says that client-go is known to be wrong from now on, and is not
	// waited for.
	peersLost bool
	// mayExpire says that it is a matter of luck whose version expires.
	mayExpire bool
}

// servers are those that tests run on.
var servers = []struct {
	name  string
	start func(*testing.T) Server
}{
	{embeddedServer, func(t *testing.T) Server { return StartEmbedded(t) }},
	{realServer, func(t *testing.T) Server { return Start(t, Options{Controllers: true}) }},
}

const embeddedServer, realServer = "embedded", "real"

// onEach runs a test on each server, on both at the same time: most of a test is spent
// waiting. With -short it is only the embedded one, which needs no programs and little of
// the machine: then all tests run side by side.
func onEach(t *testing.T, pods int, test func(*testEnv)) {
	t.Helper()
	onServers(t, pods, true, test)
}

// onEachInTurn is onEach for tests that measure.
func onEachInTurn(t *testing.T, pods int, test func(*testEnv)) {
	t.Helper()
	onServers(t, pods, false, test)
}

func onServers(t *testing.T, pods int, sideBySide bool, test func(*testEnv)) {
	t.Helper()
	if testing.Short() {
		t.Parallel()
	}
	checkLeaks(t)
	for _, server := range servers {
		t.Run(server.name, func(t *testing.T) {
			if server.name == realServer && testing.Short() {
				t.Skip("the real server is left out with -short")
			}
			if sideBySide {
				t.Parallel()
			}
			s := newTestEnv(t, server.start, pods)
			s.on = server.name
			test(s)
		})
	}
}

// checkLeaks checks at the end of a test, and of those within it, that no goroutine is left.
// Tests that run side by side are checked at the end of all.
func checkLeaks(t *testing.T) {
	t.Helper()
	if !testing.Short() {
		t.Cleanup(func() { goleak.VerifyNone(t) })
	}
}

// onOne runs a test on the real server, with -short on the embedded one: it is about what
// stands before the server.
func onOne(t *testing.T, pods int, test func(*testEnv)) {
	t.Helper()
	if !testing.Short() {
		onReal(t, pods, test)
		return
	}
	t.Parallel()
	s := newTestEnv(t, servers[0].start, pods)
	s.on = embeddedServer
	test(s)
}

// onReal runs a test on the real server only: it is about rights, and the embedded server
// gives them all.
func onReal(t *testing.T, pods int, test func(*testEnv)) {
	t.Helper()
	if testing.Short() {
		t.Skip("the real server is left out with -short")
	}
	checkLeaks(t)
	s := newTestEnv(t, func(t *testing.T) Server { return Start(t, Options{Controllers: true}) }, pods)
	s.on = realServer
	test(s)
}

// newTestEnv brings a server up with some pods that run. Everything is gone at the end of
// the test.
func newTestEnv(t *testing.T, start func(*testing.T) Server, pods int) *testEnv {
	t.Helper()
	server := start(t)
	server.StartKubelet()
	if pods > 0 {
		server.Pods(namespace, pods)
	}
	return &testEnv{T: t, server: server, proxy: server.Proxy()}
}

// start starts copies, which will be compared with the truth.
func (s *testEnv) start(kinds []kind, config *rest.Config, truth truth) {
	s.Helper()
	s.truth = truth
	for _, k := range kinds {
		s.subjects = append(s.subjects, startSubject(s.T, k, config))
	}
}

// waitSynced waits until all copies have their first state.
func (s *testEnv) waitSynced() {
	s.Helper()
	for _, subject := range s.subjects {
		subject.waitSynced(s.T, time.Minute)
	}
}

// startPods starts copies of all pods of the namespace, of every kind.
func (s *testEnv) startPods(config *rest.Config) {
	s.Helper()
	all := selection{namespace: namespace}
	s.start(podKinds(all), config, truthOfPods(s.server.Admin(), all))
}

// watchPods starts copies of all pods, straight from the server.
func (s *testEnv) watchPods() {
	s.Helper()
	s.startPods(s.server.Config(AdminToken))
	s.waitSynced()
}

// watchPodsByProxy starts copies of all pods, whose connections can be harmed.
func (s *testEnv) watchPodsByProxy() {
	s.Helper()
	s.startPods(s.proxy.Through(s.server.Config(AdminToken)))
	s.waitSynced()
}

// settle ends a churn and waits until the controllers have nothing left to do.
func (s *testEnv) settle(churn *Churn) {
	s.Helper()
	churn.Stop()
	s.server.Settle(namespace)
}

// ours returns the copies that have a Health.
func (s *testEnv) ours() []*subject {
	var found []*subject
	for _, subject := range s.subjects {
		if subject.ours {
			found = append(found, subject)
		}
	}
	return found
}

// converge checks that every copy comes to equal a fresh consistent list, whole
// objects compared, and its handler's picture too; that no step broke the order;
// and that Health of ours says so.
func (s *testEnv) converge(within time.Duration) {
	s.Helper()
	for _, subject := range s.subjects {
		s.convergeOne(subject, within)
	}
}

// convergeOurs is converge for cases where client-go is known to fail, with the
// reason; its state once ours are right is only logged.
func (s *testEnv) convergeOurs(within time.Duration, why string) {
	s.Helper()
	s.peersLost = true
	for _, subject := range s.ours() {
		s.convergeOne(subject, within)
	}
	for _, subject := range s.subjects {
		if subject.ours {
			continue
		}
		if err := s.compare(subject); err != nil {
			s.Logf("%s is wrong, since %s: %.200s …", subject.name, why, err)
		} else {
			s.Logf("%s is right, although %s", subject.name, why)
		}
	}
}

func (s *testEnv) convergeOne(subject *subject, within time.Duration) {
	s.Helper()
	began := time.Now()
	if err := eventually(s.T, within, func() error { return s.compare(subject) }); err != nil {
		s.Errorf("%s: %v", subject.name, err)
	}
	s.Logf("%s: right after %v; its handler got %v", subject.name, time.Since(began).Round(time.Millisecond), subject.mirror)
	for _, complaint := range subject.mirror.complaints() {
		s.Errorf("%s: its handler got: %s", subject.name, complaint)
	}
	if subject.ours {
		subject.healthBecomes(s.T, within, "it follows its source", following)
	}
}

func (s *testEnv) compare(subject *subject) error {
	ctx, cancel := context.WithTimeout(s.Context(), 30*time.Second)
	defer cancel()
	want, err := s.truth(ctx)
	if err != nil {
		return err
	}
	have := subject.live.contents()
	if found := differences(want, have, sameContent); len(found) > 0 {
		return fmt.Errorf("of %d objects, the store\n\t%s", len(want), strings.Join(found, "\n\t"))
	}
	if found := subject.mirror.differences(have); len(found) > 0 {
		return fmt.Errorf("of %d objects, the handler\n\t%s", len(want), strings.Join(found, "\n\t"))
	}
	return nil
}

// retry retries until there is no error, or fails the test.
func (s *testEnv) retry(within time.Duration, try func(context.Context) error) {
	s.Helper()
	err := eventually(s.T, within, func() error {
		ctx, cancel := context.WithTimeout(s.Context(), 10*time.Second)
		defer cancel()
		return try(ctx)
	})
	if err != nil {
		s.Fatalf("still failing after %v: %v", within, err)
	}
}
