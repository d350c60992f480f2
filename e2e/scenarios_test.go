package e2e

import "testing"

// scenarios are the bad days. Each has a server of its own and every kind of copy
// at once; each ends with converge, which compares all of them with the server.
// Then what they saw is compared with what they see on the real server.
var scenarios = []struct {
	name string
	pods int
	play func(*testEnv)
	// slow ones wait for a minute or more, for pings or for client-go to read a
	// file again, and are left out with -short.
	slow bool
}{
	{name: "selected by labels", pods: 60, play: selectedByLabels},
	{name: "selected by fields", pods: 60, play: selectedByFields},
	{name: "apiserver killed", pods: 100, play: apiserverKilled},
	{name: "etcd compacted", pods: 100, play: etcdCompacted},
	{name: "etcd restored", pods: 100, play: etcdRestored},
	{name: "connections cut", pods: 100, play: connectionsCut},
	{name: "connections frozen", pods: 100, play: connectionsFrozen, slow: true},
	{name: "connections frozen, nobody pings", pods: 100, play: connectionsFrozenUnpinged, slow: true},
	{name: "custom resource comes and goes", pods: 0, play: customResource},
	{name: "access removed", pods: 60, play: accessRemoved},
	{name: "token rotated", pods: 60, play: tokenRotated, slow: true},
}

func TestScenarios(t *testing.T) {
	for _, scenario := range scenarios {
		t.Run(scenario.name, func(t *testing.T) {
			if scenario.slow && testing.Short() {
				t.Skip("it waits for a minute or more")
			}
			onEach(t, scenario.pods, func(s *testEnv) {
				scenario.play(s)
				s.compareObserved(scenario.name, s.on)
			})
		})
	}
}
