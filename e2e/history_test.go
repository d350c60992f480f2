package e2e

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/changelog"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/sqlite"
	"github.com/tarnproject/tarn/sqlite/ondisk"
)

// plainEvent is what a watch of client-go's was sent.
type plainEvent struct {
	kind    watch.EventType
	key     tarn.Key
	version int64
	raw     []byte
}

// plainWatch records the events of a namespace's pods, as a program without a cache
// would.
type plainWatch struct {
	t      *testing.T
	client kubernetes.Interface
	start  map[tarn.Key]plainEvent
	end    context.CancelFunc
	done   sync.WaitGroup

	mu     sync.Mutex
	events []plainEvent
	last   int64
}

func startPlainWatch(t *testing.T, client kubernetes.Interface) *plainWatch {
	t.Helper()
	p := &plainWatch{t: t, client: client, start: map[tarn.Key]plainEvent{}}
	list, err := client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		e := p.eventOf(watch.Added, &list.Items[i])
		p.start[e.key] = e
	}
	p.last = versionNumber(t, list.ResourceVersion)
	ctx, cancel := context.WithCancel(context.Background())
	p.end = func() {
		cancel()
		p.done.Wait()
	}
	t.Cleanup(p.end)
	p.done.Go(func() {
		for ctx.Err() == nil {
			p.follow(ctx)
			select { // the server may be unreachable
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	return p
}

func (p *plainWatch) follow(ctx context.Context) {
	w, err := p.client.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: strconv.FormatInt(p.at(), 10), AllowWatchBookmarks: true})
	if err != nil {
		return
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		pod, ok := e.Object.(*corev1.Pod)
		if !ok {
			if status, ok := e.Object.(*metav1.Status); !ok {
				p.t.Errorf("the plain watch was sent %s %v", e.Type, e.Object)
			} else if status.Code == http.StatusGone {
				p.again(ctx)
			}
			return // its connection has ended
		}
		recorded := p.eventOf(e.Type, pod)
		p.mu.Lock()
		p.last = recorded.version
		if e.Type != watch.Bookmark {
			p.events = append(p.events, recorded)
		}
		p.mu.Unlock()
	}
}

// again continues from the version of a list. A server that was started again knows no version
// before its own start, and that may be of another kind of object: of pods nothing must have
// been missed.
func (p *plainWatch) again(ctx context.Context) {
	list, err := p.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return // it is tried again
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	known := maps.Clone(p.start)
	for _, e := range p.events {
		if known[e.key] = e; e.kind == watch.Deleted {
			delete(known, e.key)
		}
	}
	same := len(known) == len(list.Items)
	for i := range list.Items {
		e := p.eventOf(watch.Added, &list.Items[i])
		same = same && known[e.key].version == e.version
	}
	if !same {
		p.t.Errorf("the plain watch has missed what came after version %d", p.last)
	}
	p.last = versionNumber(p.t, list.ResourceVersion)
}

func (p *plainWatch) eventOf(kind watch.EventType, pod *corev1.Pod) plainEvent {
	raw, err := pod.Marshal()
	if err != nil {
		p.t.Error(err)
	}
	return plainEvent{kind, tarn.Key(pod.Namespace + "/" + pod.Name), versionNumber(p.t, pod.ResourceVersion), raw}
}

func (p *plainWatch) at() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

func versionNumber(t *testing.T, v string) int64 {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		t.Errorf("the version %q is no number", v)
	}
	return n
}

// A history has every event that a plain watch of client-go's was sent, with the same
// version and the same bytes, in the same order, or a gap where the mirror could not see it;
// and what it says of a version is what the events add up to.
func TestHistory(t *testing.T) {
	if testing.Short() {
		t.Skip("the real server is left out with -short")
	}
	cluster := Start(t, Options{Controllers: true}) // without them there is no account that pods run under
	cluster.Namespace(namespace)
	plain := startPlainWatch(t, cluster.Admin())
	proxy := cluster.Proxy()

	dir := filepath.Join(t.TempDir(), "replica")
	db, err := sqlite.Open(dir, sqlite.Options{History: sqlite.History{Age: time.Hour}, GroupDelay: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	pods, err := kube.Reflect[*corev1.Pod](ctx, proxy.Through(cluster.Config(AdminToken)), kube.Namespaces(namespace), ondisk.In[*corev1.Pod](db, ondisk.WithLastApplied()))
	if err != nil {
		t.Fatal(err)
	}
	if err := pods.WaitSynced(ctx); err != nil {
		t.Fatal(err)
	}
	// The log begins with the state of its first commit, here with none.
	if err := db.Flush(); err != nil {
		t.Fatal(err)
	}
	waitForPlain := func() {
		t.Helper()
		// A write of our own is the last event that both must have.
		last, err := cluster.Admin().CoreV1().Pods(namespace).Create(ctx, barePod(fmt.Sprint("last-", time.Now().UnixNano())), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		cluster.eventually(time.Minute, func(context.Context) error {
			if at := plain.at(); at < versionNumber(t, last.ResourceVersion) {
				return fmt.Errorf("the plain watch is at %d, and not at %s", at, last.ResourceVersion)
			}
			return nil
		})
	}

	churn := cluster.StartChurn(namespace)
	cluster.WaitWrites(churn, 1000)
	proxy.Cut() // it resumes: no gap
	cluster.WaitWrites(churn, 500)
	proxy.Refuse()
	cluster.WaitWrites(churn, 200)
	churn.Stop()
	waitForPlain()
	// The versions that the mirror has not seen are gone when it comes back.
	cluster.Kill()
	cluster.Compact()
	cluster.Start()
	proxy.Accept()
	cluster.eventually(time.Minute, func(context.Context) error {
		if v := versionNumber(t, string(pods.Health().Version)); v < plain.at() {
			return fmt.Errorf("the mirror is at %d, and not at %d", v, plain.at())
		}
		return nil
	})
	churn = cluster.StartChurn(namespace)
	cluster.WaitWrites(churn, 500)
	churn.Stop()
	waitForPlain()
	if err := pods.WaitFor(ctx, tarn.Version(strconv.FormatInt(plain.at(), 10))); err != nil {
		t.Fatal(err)
	}
	if err := db.Flush(); err != nil {
		t.Fatal(err)
	}
	plain.end()
	compareHistory(t, db.Log("pods"), plain)
	cancel()
	<-pods.Done()
}

// compareHistory compares a log with the events of a plain watch.
func compareHistory(t *testing.T, log changelog.Log, plain *plainWatch) {
	t.Helper()
	type place struct {
		key     tarn.Key
		version int64
	}
	bounds, err := log.Bounds(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	known, gaps, last := map[place]changelog.State{}, []changelog.Gap(nil), int64(0)
	for e, err := range log.After(t.Context(), bounds.First) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Gap != nil {
			gaps = append(gaps, *e.Gap)
			last = 0
			continue
		}
		version := versionNumber(t, string(e.Version))
		if version < last && len(gaps) == 0 {
			t.Errorf("%s at %d comes after %d", e.Key, version, last)
		}
		// A deletion that was found out by reading anew has the version of the last state.
		if at := (place{e.Key, version}); known[at].Key == "" {
			known[at] = e.State
		}
		last = version
	}
	inGap := func(version int64) bool {
		return slices.ContainsFunc(gaps, func(g changelog.Gap) bool {
			return versionNumber(t, string(g.From)) < version && version <= versionNumber(t, string(g.To))
		})
	}
	operations := map[watch.EventType]changelog.Operation{watch.Added: changelog.Added, watch.Modified: changelog.Modified, watch.Deleted: changelog.Deleted}
	missed, compared := 0, 0
	for _, e := range plain.events {
		s, ok := known[place{e.key, e.version}]
		switch {
		case inGap(e.version):
			missed++
		case !ok:
			t.Errorf("%s of %s at %d is not in the log, and in no gap of %v", e.kind, e.key, e.version, gaps)
		case s.Operation != operations[e.kind] || !bytes.Equal(s.Object, e.raw):
			t.Errorf("%s of %s at %d is %s in the log, and its bytes are equal: %v", e.kind, e.key, e.version, s.Operation, bytes.Equal(s.Object, e.raw))
		default:
			compared++
		}
	}
	moments := compareMoments(t, log, plain, inGap)
	t.Logf("%d events are in the log, %d in its gaps %v; %d moments were compared; %d states are kept", compared, missed, gaps, moments, bounds.States)
	if compared < 1000 || missed == 0 || len(gaps) == 0 || moments < 10 {
		t.Error("that is too little to have shown anything")
	}
}

// compareMoments compares the state at some versions with what events add up to.
func compareMoments(t *testing.T, log changelog.Log, plain *plainWatch, inGap func(int64) bool) (compared int) {
	t.Helper()
	state := maps.Clone(plain.start)
	for i, e := range plain.events {
		if state[e.key] = e; e.kind == watch.Deleted {
			delete(state, e.key)
		}
		if i%97 != 96 || inGap(e.version) {
			continue
		}
		place, err := log.AtVersion(t.Context(), tarn.Version(strconv.FormatInt(e.version, 10)))
		if err != nil || len(place.Gaps) > 0 {
			t.Errorf("version %d is in the gaps %v (%v)", e.version, place.Gaps, err)
			continue
		}
		compared++
		left := maps.Clone(state)
		for s, err := range log.AsOf(t.Context(), place) {
			if err != nil {
				t.Fatal(err)
			}
			if want, ok := left[s.Key]; !ok || !bytes.Equal(want.raw, s.State.Object) {
				t.Errorf("as of %d %s is at %s, and was at %d", e.version, s.Key, s.Version, want.version)
			}
			delete(left, s.Key)
		}
		for key, lost := range left {
			t.Errorf("as of %d %s is missing, which was at %d", e.version, key, lost.version)
		}
	}
	return compared
}
