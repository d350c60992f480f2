package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/kube"
)

// withUID is the config of somebody who may read the namespace kube-system.
func withUID(of *apiserver.Server, _ string) *rest.Config { return of.Config() }

// withoutUID is the config of somebody who may not read the namespace kube-system, as with
// rights in one namespace only, for a cluster at an address.
func withoutUID(of *apiserver.Server, address string) *rest.Config {
	cfg := of.Config()
	cfg.Host = address
	cfg.Wrap(transport.WrapperFunc(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			if !strings.HasSuffix(r.URL.Path, "/namespaces/kube-system") {
				return next.RoundTrip(r)
			}
			return &http.Response{StatusCode: http.StatusForbidden, Request: r, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(
				`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`))}, nil
		})
	}))
	return cfg
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A kubeconfig is replaced by one of another cluster, and neither of the two may be asked for its
// uid: the rows are those of the other cluster afterwards.
func TestOtherClusterWithoutUID(t *testing.T) {
	db := connect(t, database(t), Options{})
	access := withoutUID
	run := func(server *apiserver.Server, address string, want ...string) {
		t.Helper()
		reflect := func(ctx context.Context, _ *rest.Config, opts ...kube.Option) (*tarn.Replica[*corev1.Pod], error) {
			return kube.Reflect[*corev1.Pod](ctx, access(server, address), opts...)
		}
		defer feed(t, server, reflect, In[*corev1.Pod](db))()
		db.at(t, server, "pods")
		eventually(t, "the rows are those of "+address, func() bool {
			return fmt.Sprint(db.query(t, "SELECT name FROM pods ORDER BY name")) == fmt.Sprint(want)
		})
	}
	east, west := serverWith(t, 2), serverWith(t, 0)
	for i := range 4 {
		must(t, west.Put(pod(fmt.Sprint("west-", i), corev1.PodPending)))
	}
	run(east, "http://east.invalid", "pod-0", "pod-1")
	run(east, "http://east.invalid", "pod-0", "pod-1")
	names := []string{"pod-0", "pod-1"}
	for _, may := range []func(*apiserver.Server, string) *rest.Config{withUID, withoutUID, withUID} {
		access = may // rights are granted, taken back, and granted again
		names = append(names, fmt.Sprint("pod-", len(names)))
		must(t, east.Put(pod(names[len(names)-1], corev1.PodPending)))
		run(east, "http://other-name.invalid", names...)
	}
	db.wants(t, "SELECT count(*) FROM tarn_gaps", "0")
	run(west, "", "west-0", "west-1", "west-2", "west-3")
	db.wants(t, "SELECT count(*) > 0 FROM tarn_gaps", "true")
}

// afterAnotherCluster asks a server who it is, for pods whose rows are of another cluster.
func afterAnotherCluster(t *testing.T, server *apiserver.Server) *confirmation {
	t.Helper()
	client, err := kube.NewClient(server.Config())
	must(t, err)
	before := "the uid of another cluster"
	return &confirmation{of: kube.OriginOf(client, kube.Collection{Resource: corev1.SchemeGroupVersion.WithResource("pods")}), before: &before}
}

// The other cluster was recorded, and the answer to that was lost: it is another cluster all the
// same when it is asked again.
func TestOtherClusterRecordedWithoutAnAnswer(t *testing.T) {
	db := connect(t, database(t), Options{})
	server := serverWith(t, 1)
	end := feed(t, server, kube.Reflect[*corev1.Pod], In[*corev1.Pod](db))
	db.at(t, server, "pods")
	end()
	l := label{db, "pods"}
	now, err := l.get(t.Context()) // as if it had been recorded just now
	must(t, err)
	if err := afterAnotherCluster(t, server).confirm(t.Context(), l); !errors.Is(err, tarn.ErrOtherSource) || now == "" {
		t.Errorf("the rows are of %q: %v", now, err)
	}
}

// A process that finds another cluster, and ends before it has written anything of it, leaves a
// gap: the next one begins without a position.
func TestOtherClusterIsAGapAtOnce(t *testing.T) {
	db := connect(t, database(t), Options{})
	server := serverWith(t, 1)
	end := feed(t, server, kube.Reflect[*corev1.Pod], In[*corev1.Pod](db))
	db.at(t, server, "pods")
	end()
	must(t, db.Claim(t.Context(), "pods"))
	if err := afterAnotherCluster(t, server).confirm(t.Context(), label{db, "pods"}); !errors.Is(err, tarn.ErrOtherSource) {
		t.Fatal(err)
	}
	db.wants(t, "SELECT count(*) FROM tarn_positions", "0")
	db.wants(t, "SELECT section || from_version || ' to ' || to_version || ' ' || cause FROM tarn_gaps", server.Version()+" to  rewound")
}

// Somebody drops everything while it is fed. The row that is made anew says which cluster it is
// of, so that the next feeder notices that its own cluster is another one.
func TestOtherClusterAfterTheRowWasMadeAnew(t *testing.T) {
	for name, access := range map[string]func(*apiserver.Server, string) *rest.Config{"with a uid": withUID, "without": withoutUID} {
		t.Run(name, func(t *testing.T) {
			db := connect(t, database(t), Options{})
			run := func(server *apiserver.Server, address string) (stop func()) {
				return feed(t, server, func(ctx context.Context, _ *rest.Config, opts ...kube.Option) (*tarn.Replica[*corev1.Pod], error) {
					return kube.Reflect[*corev1.Pod](ctx, access(server, address), opts...)
				}, In[*corev1.Pod](db))
			}
			east, west := serverWith(t, 2), serverWith(t, 0)
			for i := range 4 {
				must(t, west.Put(pod(fmt.Sprint("west-", i), corev1.PodPending)))
			}
			stop := run(east, "http://east.invalid")
			db.at(t, east, "pods")
			before := db.query(t, "SELECT source FROM tarn_feeds")
			schema := db.query(t, "SELECT current_schema")[0]
			_, err := db.pool.Exec(t.Context(), "DROP SCHEMA "+schema+" CASCADE; CREATE SCHEMA "+schema)
			must(t, err)
			must(t, east.Put(pod("pod-2", corev1.PodPending)))
			db.at(t, east, "pods")
			stop()
			db.wants(t, "SELECT name FROM pods ORDER BY name", "pod-0", "pod-1", "pod-2")
			db.wants(t, "SELECT source FROM tarn_feeds", before...)

			defer run(west, "http://west.invalid")()
			eventually(t, "the rows are those of the other cluster", func() bool {
				return fmt.Sprint(db.query(t, "SELECT name FROM pods ORDER BY name")) == "[west-0 west-1 west-2 west-3]"
			})
		})
	}
}

// Another process takes over, with another cluster, and ends. This one compares everything when
// it feeds again, whatever version the other one has come to.
func TestClaimedFromTheFeederOfAnotherCluster(t *testing.T) {
	address := database(t)
	db, other := connect(t, address, Options{}), connect(t, address, Options{})
	server := serverWith(t, 1)
	end := feed(t, server, kube.Reflect[*corev1.Pod], In[*corev1.Pod](db))
	defer end()
	db.at(t, server, "pods")
	_, err := db.pool.Exec(t.Context(), "UPDATE tarn_feeds SET owner = '', lease_until = 'epoch'")
	must(t, err)
	must(t, other.Claim(t.Context(), "pods"))
	_, err = db.pool.Exec(t.Context(), `UPDATE tarn_feeds SET source = 'the uid of another cluster', batch = 'another',
		positions = '[{"section": "", "epoch": "", "version": "999999", "complete": true}]'`)
	must(t, err)
	other.release("pods")
	must(t, server.Put(pod("pod-1", corev1.PodPending)))
	eventually(t, "it feeds again", func() bool { return len(db.query(t, "SELECT name FROM pods")) == 2 })
	db.wants(t, "SELECT version FROM tarn_positions", server.Version())
	db.wants(t, "SELECT source = 'the uid of another cluster' FROM tarn_feeds", "false")
}
