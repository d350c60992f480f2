package ondisk

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/sqlite"
)

// pastScene is a cluster that is kept with its history.
type pastScene struct {
	*testing.T
	server *apiserver.Server
	db     *sqlite.DB
	end    []func()
}

// inThePast runs a test on a scene, in a bubble.
func inThePast(t *testing.T, run func(s *pastScene)) {
	dir := directory(t)
	synctest.Test(t, func(t *testing.T) {
		s := &pastScene{T: t, server: apiserver.New(apiserver.Options{AnyNamespace: true})}
		defer s.server.Close()
		var err error
		s.db, err = sqlite.Open(dir, sqlite.Options{Logger: quiet, History: sqlite.History{Age: 30 * 24 * time.Hour}})
		must(t, err)
		run(s)
		for _, end := range s.end {
			end()
		}
		must(t, s.db.Close())
		report, err := sqlite.Check(t.Context(), dir, nil)
		must(t, err)
		for _, f := range report.Findings {
			t.Errorf("check: %s", f)
		}
	})
}

func keepPast[T any](s *pastScene, opts ...kube.Option) *tarn.Replica[T] {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	r, err := kube.Reflect[T](ctx, s.server.Config(), append([]kube.Option{In[T](s.db)}, opts...)...)
	must(s, err)
	must(s, r.WaitSynced(ctx))
	s.end = append(s.end, func() {
		cancel()
		<-r.Done()
	})
	return r
}

func (s *pastScene) put(objects ...runtime.Object) {
	s.Helper()
	must(s, s.server.Put(objects...))
	time.Sleep(5 * time.Second)
}

// now is a moment before all that follows.
func (s *pastScene) now() time.Time {
	defer time.Sleep(time.Second)
	return time.Now()
}

func (s *pastScene) ask(at time.Time, sql string, args ...any) string {
	s.Helper()
	result, err := sqlite.Moment{Time: at}.Query(s.Context(), s.db.Dir(), sql, sqlite.Limits{}, args...)
	if err != nil {
		return err.Error()
	}
	if len(result.Gaps) > 0 {
		return fmt.Sprint(result.Rows, " with gaps ", len(result.Gaps))
	}
	return fmt.Sprint(result.Rows)
}

func somePod(name, node, image, phase string) *corev1.Pod {
	p := pod(name, node)
	p.Spec.Containers = []corev1.Container{{Name: "c", Image: image}}
	p.Status.Phase, p.Status.PodIP = corev1.PodPhase(phase), "10.0.0.7"
	return p
}

// The questions of docs/history.md.
func TestPastQuestions(t *testing.T) {
	inThePast(t, func(s *pastScene) {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-7"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
		must(t, s.server.Put(node))
		must(t, s.server.Put(somePod("api", "node-7", "shop/api:1", "Running")))
		keepPast[*corev1.Pod](s)
		keepPast[*corev1.Node](s)
		keepPast[*appsv1.ReplicaSet](s)
		time.Sleep(5 * time.Second)
		begin := s.now()
		s.put(somePod("web", "node-8", "shop/api:2", "Pending"))
		web := s.now()
		s.put(somePod("web", "node-8", "shop/api:2", "Running"))
		down := node.DeepCopy()
		down.Status.Conditions[0].Status = corev1.ConditionFalse
		s.put(down)
		failed := s.now()
		key := pod("api", "").Namespace
		must(t, s.server.Delete(pod("api", "")))
		for i := range 3 {
			set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: key, Name: fmt.Sprint("web-", i), OwnerReferences: ownedBy("Deployment", "web", "u")}}
			s.put(set)
		}
		must(t, s.db.Flush())
		for _, q := range []struct {
			at        time.Time
			sql, want string
		}{
			{time.Time{}, fmt.Sprintf("SELECT name, operation FROM pods_history WHERE valid_from > %d AND namespace = '%s' ORDER BY seq", begin.Unix(), key), "[[web added] [web modified] [api deleted]]"},
			{failed, "SELECT name FROM pods WHERE node = 'node-7' AND phase = 'Running'", "[[api]]"},
			{failed, "SELECT p.name, n.ready FROM pods p JOIN nodes n ON n.name = p.node", "[[api 0]]"},
			{begin, "SELECT p.name, n.ready FROM pods p JOIN nodes n ON n.name = p.node", "[[api 1]]"},
			{time.Now(), "SELECT p.name, n.ready FROM pods p JOIN nodes n ON n.name = p.node", "[]"},
			{time.Time{}, fmt.Sprintf("SELECT min(valid_from) >= %d FROM pods_history WHERE images LIKE '%%shop/api:2%%' AND phase = 'Running'", web.Unix()), "[[1]]"},
			{time.Time{}, "SELECT owner_name, count(*) FROM replicasets_apps_history WHERE operation = 'added' GROUP BY 1", "[[web 3]]"},
			{begin, "SELECT name FROM pods WHERE pod_ip = '10.0.0.7'", "[[api]]"},
			{begin, "SELECT image, node FROM pods_images", "[[shop/api:1 node-7]]"},
			{failed, "SELECT image, node FROM pods_images ORDER BY image", "[[shop/api:1 node-7] [shop/api:2 node-8]]"},
			{time.Time{}, "SELECT p.name, i.image, i.node FROM pods_images i JOIN pods p USING (id)", "[[web shop/api:2 node-8]]"},
			{begin.Add(-time.Hour), "SELECT name FROM pods", "expired"},
		} {
			if got := s.ask(q.at, q.sql); got != q.want && !(q.want == "expired" && strings.Contains(got, "no longer keeps")) {
				t.Errorf("%s:\n%s, want\n%s", q.sql, got, q.want)
			}
		}
		for _, table := range []string{"pods", "nodes", "replicasets_apps"} {
			for _, sql := range []string{"SELECT key, labels, namespace, name, uid, resource_version, created, owner_name, object FROM %s ORDER BY key", "SELECT name, value FROM %s_labels ORDER BY 1, 2"} {
				sql = fmt.Sprintf(sql, table)
				if present, past := s.ask(time.Time{}, sql), s.ask(time.Now(), sql); present != past {
					t.Errorf("%s: the present is\n%s\nand as of now\n%s", sql, present, past)
				}
			}
		}
	})
}

// Objects that the program does not know as Go types have a past too, in all columns.
func TestPastOfUnstructuredObjects(t *testing.T) {
	inThePast(t, func(s *pastScene) {
		must(t, s.server.Put(somePod("api", "node-7", "shop/api:1", "Pending")))
		keepPast[*unstructured.Unstructured](s, kube.Resource(corev1.SchemeGroupVersion.WithResource("pods")))
		time.Sleep(5 * time.Second)
		begin := s.now()
		s.put(somePod("api", "node-7", "shop/api:1", "Running"))
		must(t, s.db.Flush())
		const sql = "SELECT key, phase, resource_version, object_metadata, object_spec, object_status, object FROM pods"
		if present, past := s.ask(time.Time{}, sql), s.ask(time.Now(), sql); present != past || !strings.Contains(past, `"phase":"Running"`) {
			t.Errorf("the present is\n%s\nand as of now\n%s", present, past)
		}
		if got := s.ask(begin, "SELECT phase, json_extract(object, '$.status.phase'), json_extract(object, '$.kind') FROM pods"); got != "[[Pending Pending Pod]]" {
			t.Errorf("before it was %s", got)
		}
	})
}

// A relist after the version was compacted is a gap, and answers name it. A restart that
// resumes is not a gap.
func TestPastKnowsItsGaps(t *testing.T) {
	inThePast(t, func(s *pastScene) {
		must(t, s.server.Put(somePod("api", "node-7", "shop/api:1", "Running")))
		first := keepPast[*corev1.Pod](s)
		time.Sleep(5 * time.Second)
		s.end[0]()
		s.put(somePod("api", "node-7", "shop/api:2", "Running"))
		resumed := keepPast[*corev1.Pod](s)
		time.Sleep(5 * time.Second)
		if got := s.ask(time.Time{}, "SELECT count(*) FROM tarn_gaps"); got != "[[0]]" {
			t.Errorf("after a restart that resumed there are %s gaps", got)
		}
		s.end[1]()
		lost := time.Now()
		s.put(somePod("api", "node-7", "shop/api:3", "Running"))
		s.put(somePod("api", "node-7", "shop/api:4", "Running"))
		s.server.Compact()
		keepPast[*corev1.Pod](s)
		time.Sleep(5 * time.Second)
		if got := s.ask(time.Time{}, "SELECT collection, cause FROM tarn_gaps"); got != "[[pods read anew]]" {
			t.Errorf("after a relist the gaps are %s", got)
		}
		if got := s.ask(lost.Add(3*time.Second), "SELECT images FROM pods"); got != `[[["shop/api:2"]]] with gaps 1` {
			t.Errorf("in the gap: %s", got)
		}
		if got := s.ask(time.Now(), "SELECT images FROM pods"); got != `[[["shop/api:4"]]]` {
			t.Errorf("after the gap: %s", got)
		}
		if got := s.ask(time.Time{}, "SELECT images FROM pods_history ORDER BY seq"); got != `[[["shop/api:1"]] [["shop/api:2"]] [["shop/api:4"]]] with gaps 1` {
			t.Errorf("the history is %s", got)
		}
		_, _ = first, resumed
	})
}
