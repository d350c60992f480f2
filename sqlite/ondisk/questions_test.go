package ondisk

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/internal/questions"
	"github.com/tarnproject/tarn/internal/testsize"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/kube/columns"
	"github.com/tarnproject/tarn/sqlite"
)

var questionPods = testsize.Flag("question.pods", 300, 150, "how many pods TestQuestions asks about")

// build puts a random scene on a server, and keeps it on disk.
func build(t *testing.T, n int) (*questions.Scene, *sqlite.DB) {
	server := apiserver.New(apiserver.Options{AnyNamespace: true})
	t.Cleanup(server.Close)
	s, err := questions.Fill(t.Context(), server, n)
	must(t, err)
	db, err := sqlite.Open(directory(t), sqlite.Options{})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	nodes, err := kube.Reflect[*corev1.Node](ctx, server.Config(), In[*corev1.Node](db))
	must(t, err)
	deployments, err := kube.Reflect[*appsv1.Deployment](ctx, server.Config(), In[*appsv1.Deployment](db))
	must(t, err)
	sets, err := kube.Reflect[*appsv1.ReplicaSet](ctx, server.Config(), In[*appsv1.ReplicaSet](db))
	must(t, err)
	pods, err := kube.Reflect[*corev1.Pod](ctx, server.Config(), In[*corev1.Pod](db))
	must(t, err)
	t.Cleanup(func() {
		cancel()
		<-nodes.Done()
		<-deployments.Done()
		<-sets.Done()
		<-pods.Done()
		must(t, db.Close())
	})
	must(t, nodes.WaitSynced(ctx))
	must(t, deployments.WaitSynced(ctx))
	must(t, sets.WaitSynced(ctx))
	must(t, pods.WaitSynced(ctx))
	must(t, db.Flush())
	return s, db
}

// rowsOf are the rows of an answer, with commas between their values.
func rowsOf(r *sqlite.Result) (all []string) {
	for _, row := range r.Rows {
		cells := make([]string, len(row))
		for i, v := range row {
			if v != nil {
				cells[i] = fmt.Sprint(v)
			}
		}
		all = append(all, strings.Join(cells, ","))
	}
	return all
}

// The questions of the page are answered by SQL as Go answers them from the
// objects in memory.
func TestQuestions(t *testing.T) {
	asked, err := questions.On("../../docs/sql.md")
	must(t, err)
	s, db := build(t, questionPods())
	answers := s.Answers()
	if len(asked) != len(answers) {
		t.Errorf("the page has %d questions, and %d are known", len(asked), len(answers))
	}
	for _, q := range asked {
		want, known := answers[q.Text]
		if !known {
			t.Errorf("nobody knows the answer to %q", q.Text)
			continue
		}
		best := time.Hour
		for range 3 {
			r, err := db.Query(t.Context(), q.SQL, sqlite.Limits{})
			if err != nil {
				t.Fatalf("%s: %v", q.Text, err)
			}
			best = min(best, r.Took)
			got := rowsOf(r)
			if !slices.Equal(got, want) {
				t.Errorf("%s\nSQL says\n%s\nwant\n%s", q.Text, strings.Join(got, "\n"), strings.Join(want, "\n"))
				break
			}
		}
		if len(want) == 0 {
			t.Errorf("%s: nothing is to be found, so nothing is tested", q.Text)
		}
		t.Logf("%s: %d rows in %v", q.Text, len(want), best)
		if best > 100*time.Millisecond && questionPods() == 10_000 && !raceEnabled { // as make questions asks
			t.Errorf("%s: it takes %v, more than 100 ms", q.Text, best)
		}
	}
}

// The page names the columns that there are, with their types.
func TestColumnsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/sql.md")
	must(t, err)
	for _, r := range columns.Resources() {
		var described []string
		for _, c := range Columns(r) {
			text := "`" + c.Name + "` " + c.Type
			if c.Index {
				text += " *"
			}
			described = append(described, text)
		}
		if line := fmt.Sprintf("| `%s` | %s |\n", TableName(r), strings.Join(described, ", ")); !strings.Contains(string(page), line) {
			t.Errorf("docs/sql.md should have the line\n%s", line)
		}
	}
	for _, c := range columns.Metadata() {
		if !strings.Contains(string(page), "`"+c.Name+"`") {
			t.Errorf("docs/sql.md does not have the column %s", c.Name)
		}
	}
}
