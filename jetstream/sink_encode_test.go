package jetstream

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tarnproject/tarn"
)

// Pods that have their parts in common are written as encoding/json has each, in one batch
// and in a chain, and also after a part that all have was changed between commits.
func TestSharedPartsAreEncodedOnce(t *testing.T) {
	t.Parallel()
	sink, err := New(startServer(t).connect(), Bucket{Name: "shared"}, Objects[*corev1.Pod]())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sink.Open(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	sink.batchSize = 100
	shared := benchPod(0)
	version := 0
	batch := func(n int) (b tarn.Batch[*corev1.Pod]) {
		version++
		for i := range n {
			p := *shared
			p.Name, p.ResourceVersion = fmt.Sprint("pod-", i), fmt.Sprint(version)
			b.Changes = append(b.Changes, tarn.Change[*corev1.Pod]{Type: tarn.Update, Key: tarn.Key("default/" + p.Name), Object: &p, Version: tarn.Version(p.ResourceVersion)})
		}
		b.Positions, b.LastContact = []tarn.Position{tarn.At(tarn.Version(fmt.Sprint(version)))}, time.Now()
		return b
	}
	for _, n := range []int{3, 90, 250, 90} {
		shared.Spec.Containers[1].Env[2].Value += "<changed>"
		b := batch(n)
		if err := sink.Commit(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		for _, c := range b.Changes {
			want, err := json.Marshal(c.Object)
			if err != nil {
				t.Fatal(err)
			}
			r, _, err := sink.last(t.Context(), escapeKey(c.Key))
			if err != nil || string(r.data) != string(want) {
				t.Fatalf("%d pods: %s is %q (%v), want %s", n, c.Key, r.data, err, want)
			}
			if has := stateOf(c.Key, r.header).digest; has != digest(string(c.Version), string(c.Object.UID), want) {
				t.Errorf("%d pods: %s has the digest %s", n, c.Key, has)
			}
		}
		b.Whole = true
		objects := sink.at.Objects
		if err := sink.Commit(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if now := sink.at.Objects; n == 250 && now != objects {
			t.Errorf("%d messages of objects that were there", now-objects)
		}
	}
}

// The digest is the one that buckets have.
func TestDigestStays(t *testing.T) {
	for want, of := range map[string][3]string{
		"f297dbdb438b5a13": {"12", "0c8a9d3e-52f4-4e0c-8b0e-2f1d4f7a9b10", `{"a":1}`},
		"865721d3764db623": {"", "", ""},
	} {
		if got := digest(of[0], of[1], []byte(of[2])); got != want {
			t.Errorf("digest of %q is %s, want %s", of, got, want)
		}
	}
}
