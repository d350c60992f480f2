package ondisk

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/kube/columns"
	"github.com/tarnproject/tarn/sqlite"
)

var questionPods = flag.Int("question.pods", 300, "how many pods TestQuestions asks about")

// scene is a cluster's worth of objects, and the copies of them.
type scene struct {
	pods        []*corev1.Pod
	nodes       []*corev1.Node
	deployments []*appsv1.Deployment
	sets        []*appsv1.ReplicaSet
}

func collect[T any](r *tarn.Replica[T]) (all []T) {
	for _, o := range r.All() {
		all = append(all, o)
	}
	return all
}

func meta(kind, namespace, name string) (metav1.TypeMeta, metav1.ObjectMeta) {
	group := "v1"
	if kind == "Deployment" || kind == "ReplicaSet" {
		group = "apps/v1"
	}
	return metav1.TypeMeta{APIVersion: group, Kind: kind}, metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": name}}
}

func ownedBy(kind, name string, uid string) []metav1.OwnerReference {
	yes := true
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, UID: uidOf(uid), Controller: &yes}}
}

// build puts a random scene on a server, keeps it on disk, and gives what the
// copies hold.
func build(t *testing.T, n int) (*scene, *sqlite.DB) {
	dice := rand.New(rand.NewPCG(7, 7))
	server := apiserver.New(apiserver.Options{AnyNamespace: true})
	t.Cleanup(server.Close)
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

	for i := range 10 {
		o := &corev1.Node{}
		o.TypeMeta, o.ObjectMeta = meta("Node", "", "node-"+strconv.Itoa(i))
		o.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(strconv.Itoa(2 + i))}
		must(t, server.Put(o))
	}
	apps := max(n/20, 10)
	for i := range apps {
		d := &appsv1.Deployment{}
		d.TypeMeta, d.ObjectMeta = meta("Deployment", "team-"+strconv.Itoa(i%5), "app-"+strconv.Itoa(i))
		replicas := int32(dice.IntN(4))
		d.Spec.Replicas, d.Status.AvailableReplicas = &replicas, int32(dice.IntN(4))
		must(t, server.Put(d))
	}
	must(t, deployments.WaitFor(ctx, tarn.Version(server.Version())))
	for _, d := range collect(deployments) {
		s := &appsv1.ReplicaSet{}
		s.TypeMeta, s.ObjectMeta = meta("ReplicaSet", d.Namespace, d.Name+"-x")
		s.OwnerReferences = ownedBy("Deployment", d.Name, string(d.UID))
		must(t, server.Put(s))
	}
	must(t, sets.WaitFor(ctx, tarn.Version(server.Version())))
	owners := collect(sets)
	var all []runtime.Object
	for i := range n {
		all = append(all, randomPod(dice, i, owners[i%len(owners)]))
	}
	must(t, server.Put(all...))
	must(t, pods.WaitFor(ctx, tarn.Version(server.Version())))
	must(t, nodes.WaitSynced(ctx))
	must(t, db.Flush())
	return &scene{collect(pods), collect(nodes), collect(deployments), owners}, db
}

func randomPod(dice *rand.Rand, i int, owner *appsv1.ReplicaSet) *corev1.Pod {
	p := &corev1.Pod{}
	p.TypeMeta, p.ObjectMeta = meta("Pod", owner.Namespace, fmt.Sprintf("%s-%d", owner.Name, i))
	p.Labels["app"] = strings.TrimSuffix(owner.Name, "-x")
	switch dice.IntN(10) {
	case 0: // nobody's
	case 1:
		p.OwnerReferences = ownedBy("ReplicaSet", "gone", fmt.Sprint("gone-", i))
	default:
		p.OwnerReferences = ownedBy("ReplicaSet", owner.Name, string(owner.UID))
	}
	p.Spec.NodeName = "node-" + strconv.Itoa(dice.IntN(10))
	phases := []corev1.PodPhase{corev1.PodRunning, corev1.PodRunning, corev1.PodPending, corev1.PodSucceeded, corev1.PodFailed}
	p.Status.Phase = phases[dice.IntN(len(phases))]
	for c := range 1 + dice.IntN(2) {
		name := "c" + strconv.Itoa(c)
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: name, Image: "image:" + strconv.Itoa(dice.IntN(5)),
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("64Mi")}}})
		s := corev1.ContainerStatus{Name: name, Ready: dice.IntN(3) > 0, RestartCount: int32(dice.IntN(3))}
		if !s.Ready {
			s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}
		}
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, s)
	}
	if ready := dice.IntN(3); ready > 0 {
		status := []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionTrue}[ready-1]
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
	}
	return p
}

// lines are the answers that Go gives.
type lines []string

func (l *lines) add(cells ...any) {
	parts := make([]string, len(cells))
	for i, c := range cells {
		parts[i] = fmt.Sprint(c)
	}
	*l = append(*l, strings.Join(parts, ","))
}

func isReady(p *corev1.Pod) bool {
	return len(p.Status.Conditions) > 0 && p.Status.Conditions[0].Status == corev1.ConditionTrue
}

func restarts(p *corev1.Pod) (n int) {
	for _, s := range p.Status.ContainerStatuses {
		n += int(s.RestartCount)
	}
	return n
}

// answers are computed from the objects that the copies in memory hold.
func (s *scene) answers() map[string]lines {
	byName := func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	}
	slices.SortFunc(s.pods, byName)
	slices.SortFunc(s.nodes, func(a, b *corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(s.deployments, func(a, b *appsv1.Deployment) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	setOf, sets := map[string]string{}, map[string]bool{}
	for _, r := range s.sets {
		setOf[string(r.OwnerReferences[0].UID)] = string(r.UID)
		sets[string(r.UID)] = true
	}
	all := map[string]lines{}
	var notReady, onNode, orphans, labelled lines
	type use struct {
		nodes      map[string]bool
		containers int
	}
	images, phases := map[string]*use{}, map[string]int{}
	type workload struct {
		namespace, kind, name string
		restarts              int
	}
	workloads := map[string]*workload{}
	for _, p := range s.pods {
		readyContainers := 0
		status := string(p.Status.Phase)
		for _, c := range p.Status.ContainerStatuses {
			if c.Ready {
				readyContainers++
			} else {
				status = "CrashLoopBackOff"
			}
		}
		if !isReady(p) && p.Status.Phase != corev1.PodSucceeded {
			notReady.add(p.Namespace, p.Name, status, fmt.Sprintf("%d/%d", readyContainers, len(p.Spec.Containers)), restarts(p), p.Spec.NodeName)
		}
		if p.Spec.NodeName == "node-3" {
			onNode.add(p.Namespace, p.Name, status, 0.25*float64(len(p.Spec.Containers)), 64*len(p.Spec.Containers))
		}
		for _, c := range p.Spec.Containers {
			if images[c.Image] == nil {
				images[c.Image] = &use{nodes: map[string]bool{}}
			}
			images[c.Image].nodes[p.Spec.NodeName] = true
			images[c.Image].containers++
		}
		phases[p.Namespace+","+string(p.Status.Phase)]++
		if p.Labels["app"] == "app-7" {
			labelled.add(p.Namespace, p.Name)
		}
		for _, o := range p.OwnerReferences {
			if !sets[string(o.UID)] {
				orphans.add(p.Namespace, p.Name, o.Kind, o.Name)
			}
			id := p.Namespace + string(o.UID)
			if workloads[id] == nil {
				workloads[id] = &workload{p.Namespace, o.Kind, o.Name, 0}
			}
			workloads[id].restarts += restarts(p)
		}
	}
	all["Which pods are not ready, and why?"] = notReady
	all["What runs on a node?"] = onNode
	all["What is left over from an owner that is gone?"] = orphans
	all["Which pods have a label?"] = labelled
	var imageLines, phaseLines, restartLines, owned, requested, wanting lines
	for image, u := range images {
		imageLines.add(image, len(u.nodes), u.containers)
	}
	slices.Sort(imageLines)
	for k, n := range phases {
		phaseLines.add(k, n)
	}
	slices.Sort(phaseLines)
	ranked := []*workload{}
	for _, w := range workloads {
		if w.restarts > 0 {
			ranked = append(ranked, w)
		}
	}
	slices.SortFunc(ranked, func(a, b *workload) int {
		return cmp.Or(cmp.Compare(b.restarts, a.restarts), cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
	for _, w := range ranked[:min(10, len(ranked))] {
		restartLines.add(w.namespace, w.kind, w.name, w.restarts)
	}
	for _, d := range s.deployments {
		n, ready := 0, 0
		for _, p := range s.pods {
			if len(p.OwnerReferences) > 0 && string(p.OwnerReferences[0].UID) == setOf[string(d.UID)] {
				n++
				if isReady(p) {
					ready++
				}
			}
		}
		if n == 0 {
			owned.add(d.Namespace, d.Name, 0, "")
		} else {
			owned.add(d.Namespace, d.Name, n, ready)
		}
		if d.Status.AvailableReplicas < *d.Spec.Replicas {
			wanting.add(d.Namespace, d.Name, *d.Spec.Replicas, d.Status.AvailableReplicas)
		}
	}
	for _, node := range s.nodes {
		n, cpu := 0, 0.0
		for _, p := range s.pods {
			if p.Spec.NodeName == node.Name && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
				n++
				cpu += 0.25 * float64(len(p.Spec.Containers))
			}
		}
		requested.add(node.Name, node.Status.Allocatable.Cpu().Value(), cpu, n)
	}
	all["Which images are in use, on how many nodes?"] = imageLines
	all["How many pods of which phase are in each namespace?"] = phaseLines
	all["Which workloads restart most?"] = restartLines
	all["Who owns what?"] = owned
	all["What is requested of each node, of what it has?"] = requested
	all["Which deployments do not have what they want?"] = wanting
	return all
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

var question = regexp.MustCompile("(?m)^### ([^\n]+)\n+```sql\n((?s:.*?))```")

// The questions of the page are answered by SQL as Go answers them from the
// objects in memory.
func TestQuestions(t *testing.T) {
	page, err := os.ReadFile("../../docs/sql.md")
	must(t, err)
	s, db := build(t, *questionPods)
	answers := s.answers()
	questions := question.FindAllStringSubmatch(string(page), -1)
	if len(questions) != len(answers) {
		t.Errorf("the page has %d questions, and %d are known", len(questions), len(answers))
	}
	for _, q := range questions {
		want, known := answers[q[1]]
		if !known {
			t.Errorf("nobody knows the answer to %q", q[1])
			continue
		}
		best := time.Hour
		for range 3 {
			r, err := db.Query(t.Context(), q[2], sqlite.Limits{})
			if err != nil {
				t.Fatalf("%s: %v", q[1], err)
			}
			best = min(best, r.Took)
			got := rowsOf(r)
			if !slices.Equal(got, want) {
				t.Errorf("%s\nSQL says\n%s\nwant\n%s", q[1], strings.Join(got, "\n"), strings.Join(want, "\n"))
				break
			}
		}
		if len(want) == 0 {
			t.Errorf("%s: nothing is to be found, so nothing is tested", q[1])
		}
		t.Logf("%s: %d rows in %v", q[1], len(want), best)
		if best > 100*time.Millisecond && *questionPods == 10_000 && !raceEnabled { // as make questions asks
			t.Errorf("%s: it takes %v, more than 100 ms", q[1], best)
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
