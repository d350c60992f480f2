package e2e

import "testing"

// scenarios are the bad days. Each has a cluster of its own and every kind of
// copy at once; each ends with converge, which compares all of them with the
// server.
var scenarios = []struct {
	name string
	pods int
	play func(*stage)
}{
	{"selected by labels", 60, selectedByLabels},
	{"selected by fields", 60, selectedByFields},
	{"apiserver killed", 100, apiserverKilled},
	{"etcd compacted", 100, etcdCompacted},
	{"etcd restored", 100, etcdRestored},
	{"connections cut", 100, connectionsCut},
	{"connections frozen", 100, connectionsFrozen},
	{"connections frozen, nobody pings", 100, connectionsFrozenUnpinged},
	{"custom resource comes and goes", 0, customResource},
	{"access removed", 60, accessRemoved},
	{"token rotated", 60, tokenRotated},
}

func TestScenarios(t *testing.T) {
	for _, scenario := range scenarios {
		t.Run(scenario.name, func(t *testing.T) { scenario.play(newStage(t, scenario.pods)) })
	}
}
