package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/internal/pgtest"
	"github.com/tarnproject/tarn/kube"
)

func pod(name string, phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": "web"}, Annotations: map[string]string{
			"kubectl.kubernetes.io/last-applied-configuration": "secret", "kept": "yes",
		}},
		Spec:   corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "web", Image: "nginx:1"}}},
		Status: corev1.PodStatus{Phase: phase},
	}
}

func serverWith(t *testing.T, n int) *apiserver.Server {
	server := apiserver.New(apiserver.Options{})
	t.Cleanup(server.Close)
	for i := range n {
		must(t, server.Put(pod(fmt.Sprint("pod-", i), corev1.PodPending)))
	}
	return server
}

// at waits until the table has come to the server's version.
func (db *DB) at(t *testing.T, server *apiserver.Server, resource string) {
	t.Helper()
	eventually(t, resource+" is written", func() bool {
		got, err := db.try(t.Context(), "SELECT version FROM tarn_positions WHERE resource = $1", resource)
		return err == nil && len(got) == 1 && got[0] >= server.Version() && len(got[0]) >= len(server.Version())
	})
}

// A restart with unchanged objects writes no row, also when the position was lost; what
// happened meanwhile is written, and nothing is recorded twice.
func TestRestart(t *testing.T) {
	kinds := map[string]func(*testing.T, *DB, *apiserver.Server) func(){
		"typed": func(t *testing.T, db *DB, server *apiserver.Server) func() {
			return feed(t, server, kube.Reflect[*corev1.Pod], In[*corev1.Pod](db))
		},
		"unstructured": func(t *testing.T, db *DB, server *apiserver.Server) func() {
			return feed(t, server, func(ctx context.Context, cfg *rest.Config, opts ...kube.Option) (*tarn.Replica[*unstructured.Unstructured], error) {
				return kube.ReflectResource(ctx, cfg, schema.GroupVersionResource{Version: "v1", Resource: "pods"}, opts...)
			}, In[*unstructured.Unstructured](db))
		},
	}
	for name, start := range kinds {
		t.Run(name, func(t *testing.T) {
			server, address := serverWith(t, 5), database(t)
			db := connect(t, address, Options{History: true})
			written := func() []string { return db.query(t, "SELECT key, xmin FROM pods ORDER BY key") }
			stop := start(t, db, server)
			db.at(t, server, "pods")
			before := written()
			stop()

			stop = start(t, db, server)
			db.at(t, server, "pods")
			stop()
			if got := written(); len(got) != 5 || !slices.Equal(got, before) {
				t.Errorf("a restart has written %q, before it was %q", got, before)
			}

			_, err := db.pool.Exec(t.Context(), "UPDATE tarn_feeds SET positions = NULL")
			must(t, err)
			must(t, server.Put(pod("pod-0", corev1.PodRunning)))
			must(t, server.Delete(pod("pod-1", "")))
			stop = start(t, db, server)
			db.at(t, server, "pods")
			stop()
			if got := written(); !slices.Equal(got[1:], before[2:]) || got[0] == before[0] {
				t.Errorf("without a position it has written %q, before it was %q", got, before)
			}
			db.wants(t, "SELECT key, operation, inferred FROM pods_history WHERE seq > 5 ORDER BY key", "default/pod-0|added|false", "default/pod-1|deleted|true")
			db.wants(t, "SELECT object ->> 'kind', object ->> 'apiVersion', object #> '{metadata,annotations}' FROM pods LIMIT 1", "Pod|v1|map[kept:yes]")
		})
	}
}

// The server restarts, twice, while changes come: all of them are there afterwards, once.
func TestServerRestarts(t *testing.T) {
	if server == nil {
		t.Skip(pgtest.ErrNotInstalled)
	}
	postgres, err := pgtest.New()
	must(t, err)
	t.Cleanup(func() { must(t, postgres.Close()) })
	cluster := serverWith(t, 3)
	db := connect(t, postgres.URL("postgres"), Options{History: true})
	feed(t, cluster, kube.Reflect[*corev1.Pod], In[*corev1.Pod](db))
	db.at(t, cluster, "pods")
	for i, end := range []func(){postgres.Stop, postgres.Kill} {
		end()
		for j := range 10 {
			must(t, cluster.Put(pod("pod-0", corev1.PodPhase(fmt.Sprint("phase-", i, "-", j)))))
		}
		must(t, postgres.Start())
		db.at(t, cluster, "pods")
	}
	phases := db.query(t, "SELECT phase FROM pods_history WHERE key = 'default/pod-0' ORDER BY seq")
	if len(phases) != 21 || phases[1] != "phase-0-0" || phases[20] != "phase-1-9" || !slices.IsSorted(phases[1:]) {
		t.Errorf("the history of pod-0 is %q", phases)
	}
	db.wants(t, "SELECT * FROM tarn_gaps")
}

// Secrets are written only on request.
func TestSecrets(t *testing.T) {
	db := connect(t, database(t), Options{})
	server := serverWith(t, 0)
	if _, err := kube.Reflect[*corev1.Secret](t.Context(), server.Config(), In[*corev1.Secret](db)); err == nil || !strings.Contains(err.Error(), "WithSecrets") {
		t.Errorf("it says %v", err)
	}
	must(t, server.Put(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s"}, Data: map[string][]byte{"a": []byte("b")}}))
	feed(t, server, kube.Reflect[*corev1.Secret], In[*corev1.Secret](db, WithSecrets()))
	db.at(t, server, "secrets")
	db.wants(t, "SELECT key, object -> 'data' ->> 'a' FROM secrets", "default/s|Yg==")
}
