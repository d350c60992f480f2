package podset

import (
	"encoding/json"
	"fmt"
	"iter"

	corev1 "k8s.io/api/core/v1"
)

// shortest is the length of the shortest word that may tell one ReplicaSet or pod
// from another: a part of a name, a hash, a uid, a value. Shorter ones are numbers
// and common syllables.
const shortest = 5

// wordsIn are the runs of small letters and digits in a text.
func wordsIn(text []byte) iter.Seq[string] {
	return func(yield func(string) bool) {
		from := 0
		for i := 0; i <= len(text); i++ {
			if i < len(text) && (text[i] >= 'a' && text[i] <= 'z' || text[i] >= '0' && text[i] <= '9') {
				continue
			}
			if i-from >= shortest && !yield(string(text[from:i])) {
				return
			}
			from = i + 1
		}
	}
}

// groupWords are the words that no other ReplicaSet has, which therefore must
// change in a clone. Words that ReplicaSets have in common stay: real ones have
// them in common too.
type groupWords struct {
	// common occur in several pods of the group, or its only one.
	common []string
	// own[i] occur in the i-th pod only, ips[i] are its addresses.
	own, ips [][]string
}

// vocabulary learns which words occur where.
type vocabulary struct {
	groups [][]map[string]bool // the words of each pod of each group
	ips    [][][]string
	owner  map[string]int // the only group with a word, or several
}

const several = -1

func newVocabulary() *vocabulary { return &vocabulary{owner: map[string]int{}} }

func (v *vocabulary) add(pods []*corev1.Pod) error {
	index := len(v.groups)
	words, ips := make([]map[string]bool, len(pods)), make([][]string, len(pods))
	for i, pod := range pods {
		text, err := json.Marshal(pod)
		if err != nil {
			return fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
		words[i] = map[string]bool{}
		for w := range wordsIn(text) {
			words[i][w] = true
			if first, known := v.owner[w]; !known {
				v.owner[w] = index
			} else if first != index {
				v.owner[w] = several
			}
		}
		for _, ip := range pod.Status.PodIPs {
			ips[i] = append(ips[i], ip.IP)
		}
	}
	v.groups, v.ips = append(v.groups, words), append(v.ips, ips)
	return nil
}

func (v *vocabulary) perGroup() []groupWords {
	result := make([]groupWords, len(v.groups))
	for index, pods := range v.groups {
		in := map[string]int{}
		for _, words := range pods {
			for w := range words {
				in[w]++
			}
		}
		g := groupWords{own: make([][]string, len(pods)), ips: v.ips[index]}
		for w, pods := range in {
			if v.owner[w] != several && pods > 1 {
				g.common = append(g.common, w)
			}
		}
		for i, words := range pods {
			for w := range words {
				if v.owner[w] != several && in[w] == 1 {
					g.own[i] = append(g.own[i], w)
				}
			}
		}
		result[index] = sorted(g)
	}
	return result
}
