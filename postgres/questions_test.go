package postgres

import (
	"context"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/internal/questions"
	"github.com/tarnproject/tarn/kube"
)

// The ten questions have the same answers in Postgres as anywhere else.
func TestQuestions(t *testing.T) {
	db := connect(t, database(t)+"&extra_float_digits=0", Options{})
	server := apiserver.New(apiserver.Options{AnyNamespace: true})
	t.Cleanup(server.Close)
	scene, err := questions.Fill(t.Context(), server, 300)
	must(t, err)
	feed(t, server, kube.Reflect[*corev1.Node], In[*corev1.Node](db))
	feed(t, server, kube.Reflect[*appsv1.Deployment], In[*appsv1.Deployment](db))
	feed(t, server, kube.Reflect[*appsv1.ReplicaSet], In[*appsv1.ReplicaSet](db))
	feed(t, server, kube.Reflect[*corev1.Pod], In[*corev1.Pod](db))
	for _, table := range []string{"nodes", "deployments_apps", "replicasets_apps", "pods"} {
		db.at(t, server, table)
	}

	asked, err := questions.On("../docs/engines.md")
	must(t, err)
	answers := scene.Answers()
	if len(asked) != len(answers) {
		t.Errorf("the page has %d questions, and %d are known", len(asked), len(answers))
	}
	for _, q := range asked {
		want, known := answers[q.Text]
		if got := db.query(t, q.SQL); !known || !slices.Equal(commas(got), want) {
			t.Errorf("%s (known: %v)\nSQL says\n%s\nwant\n%s", q.Text, known, strings.Join(commas(got), "\n"), strings.Join(want, "\n"))
		}
	}
}

func commas(rows []string) []string {
	for i := range rows {
		rows[i] = strings.ReplaceAll(rows[i], "|", ",")
	}
	return rows
}

// feed copies what a server has until the test ends, or until the function is called that it
// returns.
func feed[T any](t *testing.T, server *apiserver.Server, reflect func(context.Context, *rest.Config, ...kube.Option) (*tarn.Replica[T], error), opts ...kube.Option) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	replica, err := reflect(ctx, server.Config(), opts...)
	must(t, err)
	stop = func() { cancel(); <-replica.Done() }
	t.Cleanup(stop)
	return stop
}
