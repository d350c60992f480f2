package podset

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// Kind says what the pods of a set have to do with each other.
type Kind string

const (
	// ReplicaSets are pods as controllers make them: alike within a ReplicaSet.
	ReplicaSets Kind = "replicasets"
	// Distinct pods have nothing in common but what every pod has: each has its
	// own names, commands, environment, labels and annotations.
	Distinct Kind = "distinct"
)

// Set is a collection at a version, in the order in which a server lists it.
type Set struct {
	// Pods are protobuf messages.
	Pods [][]byte
	Keys []Key
	// Version is newer than that of any pod.
	Version int
}

// Key names a pod.
type Key struct{ Namespace, Name string }

// firstVersion leaves room for as many versions of the same number of digits as
// any benchmark needs.
const firstVersion = 10_000_000

// Make returns a set of n pods, 0 meaning as many as the source has. The same
// arguments give the same set.
//
// Sets smaller than the source, and the last round of clones, have whole
// ReplicaSets as far as they fit.
func (s *Source) Make(kind Kind, n int) (*Set, error) {
	if n <= 0 {
		n = s.pods
	}
	c := cloner{rand.New(rand.NewPCG(1, 2))}
	var pods [][]byte
	for round := 0; len(pods) < n; round++ {
		before := len(pods)
		for _, g := range s.groups {
			if len(g.pods) <= n-len(pods) {
				pods = append(pods, c.more(g, kind, round)...)
			}
		}
		if len(pods) == before { // every ReplicaSet is larger than what is missing
			pods = append(pods, c.more(s.groups[0], kind, 1)[:n-len(pods)]...)
		}
	}
	return newSet(pods)
}

// more returns what a round takes of a group: in the first the pods themselves,
// then clones.
func (c cloner) more(g group, kind Kind, round int) [][]byte {
	switch {
	case kind == Distinct:
		return c.distinct(g)
	case round == 0:
		return g.pods
	default:
		return c.clone(g)
	}
}

// newSet orders the pods and gives them versions.
func newSet(pods [][]byte) (*Set, error) {
	set := &Set{Version: firstVersion + len(pods)}
	type entry struct {
		key Key
		raw []byte
	}
	entries := make([]entry, len(pods))
	uids := make(map[string]bool, len(pods))
	for i, raw := range pods {
		var pod corev1.Pod
		if err := pod.Unmarshal(raw); err != nil {
			return nil, fmt.Errorf("clone %d is no pod any more: %w", i, err)
		}
		pod.ResourceVersion = strconv.Itoa(firstVersion + i)
		raw, err := pod.Marshal()
		if err != nil {
			return nil, fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
		if uids[string(pod.UID)] {
			return nil, fmt.Errorf("pod %s/%s has the uid of another, %s", pod.Namespace, pod.Name, pod.UID)
		}
		uids[string(pod.UID)] = true
		entries[i] = entry{key: Key{pod.Namespace, pod.Name}, raw: raw}
	}
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.key.Namespace, b.key.Namespace), cmp.Compare(a.key.Name, b.key.Name))
	})
	for i, e := range entries {
		if i > 0 && e.key == entries[i-1].key {
			return nil, fmt.Errorf("two pods are named %s/%s", e.key.Namespace, e.key.Name)
		}
		set.Pods, set.Keys = append(set.Pods, e.raw), append(set.Keys, e.key)
	}
	return set, nil
}
