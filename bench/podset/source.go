// Package podset makes collections of pods for benchmarks: those of a file that
// a real API server wrote, in any number.
package podset

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"

	"github.com/klauspost/compress/zstd"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Source is what sets are made of: pods by the ReplicaSet that owns them. What
// the pods of one ReplicaSet have in common, and what all pods have, decides how
// much a decoder can share; so a ReplicaSet is the smallest thing that is taken
// or cloned.
type Source struct {
	// Origin says where the pods are from, for the report.
	Origin string
	groups []group
	pods   int
}

// group is the pods of one ReplicaSet, as protobuf messages.
type group struct {
	pods  [][]byte
	words groupWords
}

// Open reads the source from a file that holds the zstd-compressed body of one
// list of pods in protobuf. Without the file it makes up pods that are alike.
func Open(path string) (*Source, error) {
	list, err := readList(path)
	if errors.Is(err, fs.ErrNotExist) {
		return New(fmt.Sprintf("made up, because there is no file %s", path), Generate(200))
	}
	if err != nil {
		return nil, fmt.Errorf("pods of %s: %w", path, err)
	}
	return New(path, list)
}

// Read makes a set of n pods from the file that [Open] reads.
func Read(path string, kind Kind, n int) (*Set, error) {
	source, err := Open(path)
	if err != nil {
		return nil, err
	}
	return source.Make(kind, n)
}

// Pods is how many pods the source has without cloning.
func (s *Source) Pods() int { return s.pods }

// magic is what precedes every protobuf body of an API server.
const magic = "k8s\x00"

func readList(path string) ([]corev1.Pod, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	expanded, err := zstd.NewReader(file)
	if err != nil {
		return nil, err
	}
	defer expanded.Close()
	body, err := io.ReadAll(expanded)
	if err != nil {
		return nil, err
	}
	if len(body) < len(magic) || string(body[:len(magic)]) != magic {
		return nil, errors.New("not a protobuf body of an API server: it does not begin with k8s and a zero byte")
	}
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(body[len(magic):]); err != nil {
		return nil, err
	}
	if envelope.Kind != "PodList" {
		return nil, fmt.Errorf("it holds a %s %s, not a PodList", envelope.APIVersion, envelope.Kind)
	}
	var list corev1.PodList
	err = list.Unmarshal(envelope.Raw)
	return list.Items, err
}

// New makes a source of pods.
func New(origin string, pods []corev1.Pod) (*Source, error) {
	if len(pods) == 0 {
		return nil, errors.New("there is no pod to make a set of")
	}
	byOwner := map[string][]*corev1.Pod{}
	for i := range pods {
		owner := pods[i].Namespace + "/"
		if refs := pods[i].OwnerReferences; len(refs) > 0 {
			owner += string(refs[0].UID)
		} else {
			owner += pods[i].Name
		}
		byOwner[owner] = append(byOwner[owner], &pods[i])
	}
	s := &Source{Origin: origin, pods: len(pods)}
	words := newVocabulary()
	for _, owned := range sortedByFirstName(byOwner) {
		var g group
		for _, pod := range owned {
			raw, err := pod.Marshal()
			if err != nil {
				return nil, fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
			}
			g.pods = append(g.pods, raw)
		}
		if err := words.add(owned); err != nil {
			return nil, err
		}
		s.groups = append(s.groups, g)
	}
	for i, w := range words.perGroup() {
		s.groups[i].words = w
	}
	s.groups = spread(s.groups)
	return s, nil
}

func sortedByFirstName(byOwner map[string][]*corev1.Pod) [][]*corev1.Pod {
	var groups [][]*corev1.Pod
	for _, owned := range byOwner {
		groups = append(groups, owned)
	}
	slices.SortFunc(groups, func(a, b []*corev1.Pod) int {
		return cmp.Or(cmp.Compare(a[0].Namespace, b[0].Namespace), cmp.Compare(a[0].Name, b[0].Name))
	})
	return groups
}

// spread orders groups so that every prefix has small and large ones in about the
// proportion of the whole; a set of a thousand then costs as much per pod as the
// whole.
func spread(groups []group) []group {
	slices.SortStableFunc(groups, func(a, b group) int { return cmp.Compare(len(a.pods), len(b.pods)) })
	ordered := make([]group, 0, len(groups))
	for i := range groups {
		ordered = append(ordered, groups[stride(i, len(groups))])
	}
	return ordered
}

// stride visits 0 to n-1 once each, far apart.
func stride(i, n int) int {
	step := max(1, int(float64(n)/math.Phi))
	for gcd(step, n) != 1 {
		step++
	}
	return i * step % n
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
