package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/pgtest"
	"github.com/tarnproject/tarn/jetstream"
	"github.com/tarnproject/tarn/memory"
)

// Pods of a real cluster go through a relay and through feeders into Postgres and into
// JetStream. What is read back from there is what the cluster has.
func TestFeedThroughRelay(t *testing.T) {
	if testing.Short() {
		t.Skip("the real server is left out with -short")
	}
	database, err := pgtest.New()
	if errors.Is(err, pgtest.ErrNotInstalled) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer database.Close()
	cluster := Start(t, Options{Controllers: true})
	cluster.StartKubelet()
	cluster.Pods(namespace, 50)
	ports := freePorts(t, 2)
	relay := startRelayProgram(t, cluster, fmt.Sprintf("127.0.0.1:%d", ports[0]))
	defer relay.end()
	program := buildProgram(t, relay.writeKubeconfig(t.TempDir()))
	broker := fmt.Sprintf("127.0.0.1:%d", ports[1])
	toPostgres := program.start("feed", "pods", "-n", namespace, "--to", database.URL("postgres"), "--history")
	defer toPostgres.end()
	toNATS := program.start("feed", "pods", "-n", namespace, "--to", "nats", "--nats-dir", t.TempDir(), "--nats-listen", broker)
	defer toNATS.end()
	toPostgres.await("synced")
	toNATS.await("synced")

	connection, err := pgx.Connect(t.Context(), database.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close(context.Background())
	overNATS := followBucket(t, broker)

	s := &testEnv{T: t, server: cluster, on: realServer}
	churn := cluster.StartChurn(namespace)
	cluster.WaitWrites(churn, 100)
	s.settle(churn)
	for name, read := range map[string]func() (map[string]string, error){
		"Postgres":  func() (map[string]string, error) { return inPostgres(t.Context(), connection) },
		"JetStream": overNATS,
	} {
		if err := eventually(t, promptly, func() error {
			// The server is asked each time: its controllers may still write.
			list, err := cluster.Admin().CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				return err
			}
			want := map[string]string{}
			for _, pod := range list.Items {
				want[pod.Namespace+"/"+pod.Name] = pod.ResourceVersion
			}
			have, err := read()
			if err == nil && !maps.Equal(have, want) {
				err = errors.New(cmp.Diff(want, have))
			}
			return err
		}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	var repeated, gaps int
	if err := connection.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM (SELECT key, resource_version FROM pods_history WHERE operation <> 'deleted' GROUP BY 1, 2 HAVING count(*) > 1) r), (SELECT count(*) FROM tarn_gaps)`).Scan(&repeated, &gaps); err != nil {
		t.Fatal(err)
	}
	if repeated != 0 || gaps != 0 {
		t.Errorf("%d states are there more than once, and there are %d gaps", repeated, gaps)
	}
}

// inPostgres returns the versions of the pods in a database by their keys.
func inPostgres(ctx context.Context, connection *pgx.Conn) (map[string]string, error) {
	rows, err := connection.Query(ctx, "SELECT key, resource_version FROM pods")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	have := map[string]string{}
	for rows.Next() {
		var key, version string
		if err := rows.Scan(&key, &version); err != nil {
			return nil, err
		}
		have[key] = version
	}
	return have, rows.Err()
}

// followBucket keeps a copy of the pods in a bucket, and returns what reads their versions.
func followBucket(t *testing.T, broker string) func() (map[string]string, error) {
	t.Helper()
	nc, err := nats.Connect("nats://" + broker)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := natsjs.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	source, err := jetstream.NewSource(js, jetstream.Bucket{Name: "default_pods"}, jetstream.Objects[*corev1.Pod]())
	if err != nil {
		t.Fatal(err)
	}
	replica, err := tarn.NewReplica(source, memory.New[*corev1.Pod](), tarn.Options[*corev1.Pod]{Name: "pods over NATS"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { _ = replica.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-replica.Done()
	})
	return func() (map[string]string, error) {
		have := map[string]string{}
		for key, pod := range replica.All() {
			have[string(key)] = pod.ResourceVersion
		}
		return have, nil
	}
}
