package ondisk

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/sqlite"
)

// hostless is a transform that hides something.
func hostless(p *corev1.Pod) (*corev1.Pod, error) {
	p.Spec.Hostname = ""
	return p, nil
}

// What is switched off is removed from the past as from the present, and the past stays. What
// cannot be rewritten is dropped.
func TestFieldsThatAreSwitchedOff(t *testing.T) {
	transform := func(name string) testOptions {
		return testOptions{[]kube.Option{kube.Transform(hostless)}, []Option{Transform(name)}}
	}
	for name, c := range map[string]struct {
		before, after testOptions
		// gone are values that are in no file after it, kept those that are in the past.
		gone, kept []string
		dropped    bool
		// more says that the present has a field that the past lacks: the scheduler, which
		// the server sets. It is another state.
		more bool
	}{
		"a field":             {with(), with(Without("spec.schedulerName")), []string{"scheduler-1", "scheduler-2"}, []string{"host-1", "node-1"}, false, false},
		"a field in a list":   {with(), with(Without("spec.containers.workingDir")), []string{"working-dir-1", "working-dir-2"}, []string{"image-1"}, false, false},
		"another field":       {with(Without("spec.schedulerName")), with(Without("spec.hostname")), []string{"host-1", "host-2", "scheduler-1"}, []string{"image-1"}, false, true},
		"fewer fields":        {with(Without("spec.schedulerName", "spec.hostname")), with(Without("spec.hostname")), []string{"host-1"}, []string{"image-1"}, false, true},
		"annotations":         {with(WithLastApplied()), with(), []string{"applied-1", "applied-2"}, []string{"host-1"}, false, false},
		"annotations, plain":  {with(WithLastApplied(), Plain()), with(Plain()), []string{"applied-1", "applied-2"}, []string{"host-1"}, false, false},
		"a new transform":     {with(), transform("hostless"), []string{"host-1", "host-2"}, []string{"image-1"}, false, false},
		"no transform":        {transform("hostless"), with(), nil, []string{"image-1"}, false, false},
		"another transform":   {transform("hostless"), transform("other"), nil, nil, true, false},
		"other objects":       {with(), testOptions{rest: []kube.Option{kube.LabelSelector("a=b")}}, []string{"image-1"}, nil, true, false},
		"a field, no columns": {with(Plain()), with(Plain(), Without("spec.schedulerName")), []string{"scheduler-1"}, []string{"host-1"}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := directory(t)
			synctest.Test(t, func(t *testing.T) {
				server := apiserver.New(apiserver.Options{AnyNamespace: true})
				defer server.Close()
				state := func(n int) *corev1.Pod {
					p := somePod("a", fmt.Sprint("node-", n), fmt.Sprint("image-", n), "Running")
					p.Annotations = map[string]string{LastApplied: fmt.Sprint("applied-", n)}
					p.Spec.SchedulerName, p.Spec.Hostname, p.Spec.Containers[0].WorkingDir = fmt.Sprint("scheduler-", n), fmt.Sprint("host-", n), fmt.Sprint("working-dir-", n)
					return p
				}
				must(t, server.Put(state(1)))
				run := func(opts testOptions, do func(db *sqlite.DB)) {
					db, err := sqlite.Open(dir, sqlite.Options{Logger: quiet, History: sqlite.History{Age: 24 * time.Hour}})
					must(t, err)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					pods, err := kube.Reflect[*corev1.Pod](ctx, server.Config(), append(opts.rest, In[*corev1.Pod](db, opts.disk...))...)
					must(t, err)
					must(t, pods.WaitSynced(ctx))
					time.Sleep(5 * time.Second)
					do(db)
					cancel()
					<-pods.Done()
					must(t, db.Close())
				}
				run(c.before, func(*sqlite.DB) {
					must(t, server.Put(state(2)))
					time.Sleep(5 * time.Second)
					must(t, server.Put(somePod("a", "", "", "Running")))
					time.Sleep(5 * time.Second)
				})
				run(c.after, func(db *sqlite.DB) {
					time.Sleep(3 * time.Minute) // until the log is emptied
					raw, err := os.ReadFile(filepath.Join(dir, "replica.db"))
					must(t, err)
					for _, value := range c.gone {
						if strings.Contains(string(raw), value) {
							t.Errorf("%s is still in the file", value)
						}
					}
					var all strings.Builder
					n := 0
					for e, err := range db.Log("pods").Of(t.Context(), "default/a") {
						must(t, err)
						if e.Gap == nil {
							n++
							all.Write(e.Object)
						}
					}
					for _, value := range append(c.kept, c.gone...) {
						wanted := len(c.kept) > 0 && strings.Contains(strings.Join(c.kept, " "), value)
						if strings.Contains(all.String(), value) != wanted {
							t.Errorf("%s is in the past: %v", value, !wanted)
						}
					}
					want := 3
					if c.more {
						want++
					}
					if !c.dropped && n != want {
						t.Errorf("%d states are left, want %d", n, want)
					}
					result, err := sqlite.Query(t.Context(), dir, "SELECT count(*) FROM tarn_gaps WHERE cause = 'dropped'", sqlite.Limits{})
					must(t, err)
					if got := fmt.Sprint(result.Rows) == "[[1]]"; got != c.dropped {
						t.Errorf("a gap says that it was dropped: %v", got)
					}
				})
			})
			report, err := sqlite.Check(t.Context(), dir, nil)
			must(t, err)
			for _, f := range report.Findings {
				t.Errorf("check: %s", f)
			}
		})
	}
}

// testOptions are those of a copy, and those of its disk.
type testOptions struct {
	rest []kube.Option
	disk []Option
}

func with(opts ...Option) testOptions { return testOptions{disk: opts} }
