package relay

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn/apiserver"
)

// A rewind of the origin is noticed although it ends between the version that a copy has
// received and the one that was proved for it. The copy itself has not been there, so it sees
// nothing of the rewind. Its clients have, and would not be sent what happens before that
// version is reached again.
func TestRewindToBeforeAProof(t *testing.T) {
	for name, test := range map[string]struct {
		change func(origin *apiserver.Server) error
		// list is a request that is made after the change. It is one of a shard, which is not
		// passed on.
		list string
		want string
	}{
		"a change":               {func(origin *apiserver.Server) error { return origin.Put(pod("a", "2")) }, "", `"l":"2"`},
		"a delete":               {func(origin *apiserver.Server) error { return origin.Delete(pod("a", "1")) }, "", `"items":[]`},
		"nothing, and is listed": {func(*apiserver.Server) error { return nil }, "/api/v1/pods?shardSelector=" + url.QueryEscape("shardRange(object.metadata.uid, '0x0', '0x8000000000000000')"), `"l":"1"`},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Options{Gate: Everybody{}}, func(t *testing.T, r *Relay, origin *apiserver.Server, _ func()) {
				writeOthers(t, origin, 1)
				if err := origin.Put(pod("a", "1")); err != nil {
					t.Fatal(err)
				}
				writeOthers(t, origin, 2)
				backup := origin.Snapshot()
				writeOthers(t, origin, 30)
				if answer := ask(r, "/api/v1/pods?resourceVersion="+origin.Version(), "t"); answer.Code != http.StatusOK || !strings.Contains(answer.Body.String(), `"resourceVersion":"`+origin.Version()) {
					t.Fatalf("%d %s", answer.Code, answer.Body)
				}
				watching := watchAt(t, r, "t", origin.Version())
				if err := origin.Restore(backup); err != nil {
					t.Fatal(err)
				}
				if err := test.change(origin); err != nil {
					t.Fatal(err)
				}
				if test.list != "" {
					ask(r, test.list, "t")
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if text := string(bytes.Join(watching.take(), nil)); !strings.Contains(text, `"code":410`) || !watching.ended() {
					t.Errorf("the watch continues after a rewind, and was sent %q", text)
				}
				answer := ask(r, "/api/v1/pods?resourceVersion=0", "t").Body.String()
				_, version, _ := strings.Cut(answer, `"metadata":{"resourceVersion":"`)
				version, _, _ = strings.Cut(version, `"`)
				if !strings.Contains(answer, test.want) || versionOf(tarnVersion(version)) > versionOf(tarnVersion(origin.Version())) {
					t.Errorf("the origin is at %s: %s", origin.Version(), answer)
				}
			})
		})
	}
}

// writeOthers moves the version of the origin on, and changes no pod.
func writeOthers(t *testing.T, origin *apiserver.Server, n int) {
	t.Helper()
	for i := range n {
		config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "other"}, Data: map[string]string{"n": fmt.Sprint(n, i)}}
		if err := origin.Put(config); err != nil {
			t.Fatal(err)
		}
	}
}
