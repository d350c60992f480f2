package podset

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func source(t *testing.T, replicaSets int) *Source {
	t.Helper()
	s, err := New("test", Generate(replicaSets))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func decoded(t *testing.T, raws [][]byte) []corev1.Pod {
	t.Helper()
	pods := make([]corev1.Pod, len(raws))
	for i, raw := range raws {
		if err := pods[i].Unmarshal(raw); err != nil {
			t.Fatal(err)
		}
	}
	return pods
}

func madeOf(t *testing.T, s *Source, kind Kind, n int) (*Set, []corev1.Pod) {
	t.Helper()
	set, err := s.Make(kind, n)
	if err != nil {
		t.Fatal(err)
	}
	return set, decoded(t, set.Pods)
}

func TestASetHasAsManyPodsAsAskedFor(t *testing.T) {
	s := source(t, 6)
	for _, kind := range []Kind{ReplicaSets, Distinct} {
		for _, n := range []int{0, 1, 7, s.Pods() - 1, s.Pods(), s.Pods() + 1, 4*s.Pods() + 3} {
			_, pods := madeOf(t, s, kind, n)
			want := n
			if n == 0 {
				want = s.Pods()
			}
			if len(pods) != want {
				t.Errorf("%s: %d pods, asked for %d", kind, len(pods), n)
			}
			// Names and uids are checked when a set is made; addresses may
			// repeat, but not often.
			seen := map[string]int{}
			for _, p := range pods {
				seen[p.Status.PodIP]++
			}
			if len(seen) < len(pods)*95/100 {
				t.Errorf("%s, %d pods: only %d addresses", kind, n, len(seen))
			}
		}
	}
}

func TestAClonedReplicaSetSharesNothingOfItsOwnWithTheFirst(t *testing.T) {
	s := source(t, 8)
	_, pods := madeOf(t, s, ReplicaSets, 3*s.Pods())
	type owned struct {
		pods int
		hash string
		env  []corev1.EnvVar
	}
	sets, hashes := map[string]*owned{}, map[string]bool{}
	for _, p := range pods {
		ref := p.OwnerReferences[0]
		hash := p.Labels["pod-template-hash"]
		if !strings.HasPrefix(p.Name, ref.Name+"-") || !strings.HasSuffix(ref.Name, hash) || p.GenerateName != ref.Name+"-" {
			t.Fatalf("pod %s of %s with hash %s: the names do not fit any more", p.Name, ref.Name, hash)
		}
		if fields := p.ManagedFields[0].FieldsV1.GetRawString(); !strings.Contains(fields, string(ref.UID)) {
			t.Fatalf("the managed fields of %s do not name its owner %s", p.Name, ref.UID)
		}
		if ip := p.Status.PodIP; !strings.Contains(p.ManagedFields[1].FieldsV1.GetRawString(), `\"`+ip+`\"`) {
			t.Fatalf("the managed fields of %s do not name its address %s", p.Name, ip)
		}
		o := sets[string(ref.UID)]
		if o == nil {
			o = &owned{hash: hash, env: p.Spec.Containers[0].Env}
			sets[string(ref.UID)] = o
			hashes[hash] = true
		}
		o.pods++
		if o.hash != hash || !reflect.DeepEqual(o.env, p.Spec.Containers[0].Env) {
			t.Fatalf("the pods of ReplicaSet %s differ in hash or environment", ref.Name)
		}
	}
	if len(sets) != 24 || len(hashes) != 24 {
		t.Errorf("%d ReplicaSets with %d hashes, want 24 of each", len(sets), len(hashes))
	}
	values := map[string]string{}
	for uid, o := range sets {
		for _, e := range o.env {
			if other, known := values[e.Value]; known && other != uid {
				t.Fatalf("two ReplicaSets have the same environment value %q", e.Value)
			}
			values[e.Value] = uid
		}
	}
}

func TestDistinctPodsHaveTheirOwnContent(t *testing.T) {
	s := source(t, 2)
	_, pods := madeOf(t, s, Distinct, 0)
	args, env, checksums, owners := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, p := range pods {
		args[p.Spec.Containers[0].Args[2]] = true
		env[p.Spec.Containers[0].Env[0].String()] = true
		checksums[p.Annotations["checksum/config"]] = true
		owners[string(p.OwnerReferences[0].UID)] = true
	}
	for what, n := range map[string]int{"arguments": len(args), "environments": len(env), "checksums": len(checksums), "owners": len(owners)} {
		if n != len(pods) {
			t.Errorf("%d pods have %d different %s", len(pods), n, what)
		}
	}
}

func TestTheSameArgumentsGiveTheSameSet(t *testing.T) {
	a, _ := madeOf(t, source(t, 3), ReplicaSets, 200)
	b, _ := madeOf(t, source(t, 3), ReplicaSets, 200)
	if !reflect.DeepEqual(a, b) {
		t.Error("two sets made alike differ")
	}
}

func TestUpdatesAreNewerStatesOfThePods(t *testing.T) {
	s := source(t, 2)
	set, pods := madeOf(t, s, ReplicaSets, 0)
	byKey := map[Key]*corev1.Pod{}
	for i := range pods {
		byKey[set.Keys[i]] = &pods[i]
	}
	n := 2 * len(pods)
	updates, err := set.Updates(n)
	if err != nil {
		t.Fatal(err)
	}
	touched := map[Key]int{}
	for i, u := range updates {
		next := decoded(t, [][]byte{u.Pod})[0]
		pod := byKey[u.Key]
		if next.UID != pod.UID || u.Version != set.Version+1+i || next.ResourceVersion <= pod.ResourceVersion {
			t.Fatalf("update %d: uid %s after %s, version %s after %s", i, next.UID, pod.UID, next.ResourceVersion, pod.ResourceVersion)
		}
		if reflect.DeepEqual(next.Status, pod.Status) || !reflect.DeepEqual(next.Spec, pod.Spec) {
			t.Fatalf("update %d: want another status and the same spec", i)
		}
		touched[u.Key]++
	}
	for key, times := range touched {
		if times != 2 {
			t.Errorf("%v was updated %d times in two rounds", key, times)
		}
	}
}

func TestOpenReadsWhatAServerWrote(t *testing.T) {
	list := corev1.PodList{Items: Generate(2)}
	raw, err := list.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	write := func(kind string, prefix string) string {
		envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: kind}, Raw: raw}
		body, err := envelope.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		var file bytes.Buffer
		z, _ := zstd.NewWriter(&file)
		z.Write([]byte(prefix))
		z.Write(body)
		z.Close()
		path := filepath.Join(t.TempDir(), "pods.pb.zst")
		if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	path := write("PodList", magic)
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if s.Pods() != len(list.Items) || s.Origin != path {
		t.Errorf("%d pods of %q, want %d of the file", s.Pods(), s.Origin, len(list.Items))
	}
	for want, path := range map[string]string{
		"not a PodList": write("NodeList", magic), "not a protobuf body": write("PodList", "json"),
	} {
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
	made, err := Open(filepath.Join(t.TempDir(), "nothing"))
	if err != nil || !strings.Contains(made.Origin, "made up") || made.Pods() < 2_000 {
		t.Errorf("without a file: %v, error %v; want some thousand made-up pods that say so", made, err)
	}
}
