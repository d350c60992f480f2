// Program history measures what a history on disk costs and how fast it answers: bytes for
// each status update, CPU with and without it, and questions about the past.
//
//	go run ./history -pods 10000 -updates 1000000 -data pods.pb.zst
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strconv"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/bench/podset"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/sqlite"
	"github.com/tarnproject/tarn/sqlite/ondisk"
)

var (
	pods    = flag.Int("pods", 10_000, "how many pods there are")
	updates = flag.Int("updates", 200_000, "how many status updates are written")
	group   = flag.Int("group", 1000, "how many updates a commit has")
	data    = flag.String("data", "pods.pb.zst", "a list of real pods")
	dir     = flag.String("dir", "", "where the directories are made; a temporary one if empty")
	without = flag.Int("without", 50_000, "how many updates are written without a history, to compare")
	bytes   = flag.Int64("bytes", 0, "the bound of the history; none if 0")
	profile = flag.String("profile", "", "where CPU profiles of the writing with a history, and of the questions, are written")
)

func main() {
	flag.Parse()
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "history:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	folder := *dir
	if folder == "" {
		made, err := os.MkdirTemp("", "history")
		if err != nil {
			return err
		}
		defer os.RemoveAll(made)
		folder = made
	}
	of, err := origin(ctx)
	if err != nil {
		return err
	}
	load, err := newLoad()
	if err != nil {
		return err
	}
	fmt.Printf("%d pods of %d bytes on average\n", len(load.pods), load.size/len(load.pods))
	plain, err := write(ctx, filepath.Join(folder, "without"), of, load, sqlite.History{}, *without)
	if err != nil {
		return err
	}
	fmt.Printf("without a history: %.1f µs CPU per update, file of %d MiB\n", plain.cpu, plain.after>>20)
	load.reset()
	kept, err := write(ctx, filepath.Join(folder, "with"), of, load, sqlite.History{Age: 1000 * time.Hour, Bytes: *bytes}, *updates)
	if err != nil {
		return err
	}
	fmt.Printf("with a history: %.1f µs CPU per update (%.2f times), %.0f bytes on disk per update, file of %d MiB after %d, heap %d MiB\n",
		kept.cpu, kept.cpu/plain.cpu, float64(kept.after-kept.before)/float64(*updates), kept.after>>20, kept.before>>20, kept.heap>>20)
	if *profile != "" {
		stop, err := profileTo(*profile + ".ask")
		if err != nil {
			return err
		}
		defer stop()
	}
	return ask(ctx, filepath.Join(folder, "with"), load)
}

// profileTo writes a CPU profile until the returned function is called.
func profileTo(name string) (stop func(), err error) {
	file, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		file.Close()
	}, nil
}

// origin is that of a copy of pods.
func origin(ctx context.Context) (of kube.Origin, err error) {
	server := apiserver.New(apiserver.Options{AnyNamespace: true})
	defer server.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, err := kube.Reflect[*corev1.Pod](ctx, server.Config(), kube.Sink(func(o kube.Origin) (tarn.Sink[*corev1.Pod], error) {
		of = o
		return idle{}, nil
	}))
	if err != nil {
		return of, err
	}
	cancel()
	<-r.Done()
	return of, nil
}

// idle is a sink that keeps nothing.
type idle struct{}

func (idle) Policy() tarn.SinkPolicy[*corev1.Pod]                  { return tarn.SinkPolicy[*corev1.Pod]{Name: "idle"} }
func (idle) Open(context.Context, func() error) (tarn.Kept, error) { return tarn.Kept{}, nil }
func (idle) Commit(context.Context, tarn.Batch[*corev1.Pod]) error { return nil }
func (idle) Close()                                                {}

// load is what is written.
type load struct {
	set     *podset.Set
	pods    []*corev1.Pod
	size    int
	version int
	now     time.Time
	began   time.Time
}

func newLoad() (*load, error) {
	source, err := podset.Open(*data)
	if err != nil {
		return nil, err
	}
	set, err := source.Make(podset.ReplicaSets, *pods)
	if err != nil {
		return nil, err
	}
	l := &load{set: set}
	for _, raw := range set.Pods {
		l.size += len(raw)
	}
	l.reset()
	return l, nil
}

func (l *load) reset() {
	l.pods, l.version, l.now = nil, l.set.Version, time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for _, raw := range l.set.Pods {
		pod := &corev1.Pod{}
		if err := pod.Unmarshal(raw); err != nil {
			panic(err) // podset has read it before
		}
		l.pods = append(l.pods, pod)
	}
	l.began = l.now
}

func (l *load) change(i int, kind tarn.ChangeType) tarn.Change[*corev1.Pod] {
	pod := l.pods[i]
	return tarn.Change[*corev1.Pod]{Type: kind, Key: tarn.Key(pod.Namespace + "/" + pod.Name), Object: pod, Version: tarn.Version(pod.ResourceVersion), Heard: l.now}
}

// update is a status update as kubelets send them: four of five times the pod becomes
// unready or ready again, else its first container is restarted.
func (l *load) update(n int) tarn.Change[*corev1.Pod] {
	i := int(uint64(n) * 7919 % uint64(len(l.pods)))
	pod := l.pods[i]
	l.version++
	l.now = l.now.Add(time.Millisecond)
	at := metav1.NewTime(l.now.Truncate(time.Second))
	pod.ResourceVersion = strconv.Itoa(l.version)
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady || c.Type == corev1.ContainersReady {
			c.LastTransitionTime = at
			if n%5 > 0 && c.Status == corev1.ConditionTrue {
				c.Status, c.Reason = corev1.ConditionFalse, "ContainersNotReady"
			} else {
				c.Status, c.Reason = corev1.ConditionTrue, ""
			}
		}
	}
	if len(pod.Status.ContainerStatuses) > 0 {
		s := &pod.Status.ContainerStatuses[0]
		if s.Ready = !s.Ready; n%5 == 0 {
			s.RestartCount++
			s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled", StartedAt: at, FinishedAt: at, ContainerID: s.ContainerID}
			s.ContainerID = fmt.Sprintf("containerd://%064x", n)
			s.State.Running = &corev1.ContainerStateRunning{StartedAt: at}
		}
	}
	for i := range pod.ManagedFields {
		if m := &pod.ManagedFields[i]; m.Subresource == "status" {
			m.Time = &at
		}
	}
	return l.change(i, tarn.Update)
}

type written struct {
	before, after int64
	cpu           float64
	heap          uint64
}

func write(ctx context.Context, dir string, of kube.Origin, l *load, h sqlite.History, n int) (w written, err error) {
	db, err := sqlite.Open(dir, sqlite.Options{History: h, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return w, err
	}
	sink, err := ondisk.Sink[*corev1.Pod](db, of)
	if err != nil {
		return w, err
	}
	first := tarn.Batch[*corev1.Pod]{Whole: true}
	for i := range l.pods {
		first.Changes = append(first.Changes, l.change(i, tarn.Add))
	}
	if err := commit(ctx, sink, l, first); err != nil {
		return w, err
	}
	// What was written before counts without the log beside the file.
	sink.Close()
	if err := db.Close(); err != nil {
		return w, err
	}
	w.before = sizeOf(dir)
	if db, err = sqlite.Open(dir, sqlite.Options{History: h, Logger: slog.New(slog.DiscardHandler)}); err != nil {
		return w, err
	}
	if sink, err = ondisk.Sink[*corev1.Pod](db, of); err != nil {
		return w, err
	}
	if *profile != "" && h.Age > 0 {
		stop, err := profileTo(*profile)
		if err != nil {
			return w, err
		}
		defer stop()
	}
	spent := time.Duration(0)
	for done := 0; done < n; done += *group {
		b := tarn.Batch[*corev1.Pod]{}
		seen := map[tarn.Key]bool{}
		for i := range *group {
			c := l.update(done + i)
			if seen[c.Key] { // the states of one pod in a batch must not share memory
				c.Object = c.Object.DeepCopy()
			}
			seen[c.Key] = true
			b.Changes = append(b.Changes, c)
		}
		before := cpuTime()
		if err := commit(ctx, sink, l, b); err != nil {
			return w, err
		}
		spent += cpuTime() - before
		if done%(100**group) == 0 && h.Bytes > 0 {
			fmt.Printf("  %8d updates: %d MiB\n", done, sizeOf(dir)>>20)
		}
	}
	w.cpu = float64(spent.Microseconds()) / float64(n)
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	w.heap = m.HeapAlloc
	sink.Close()
	if err := db.Close(); err != nil {
		return w, err
	}
	w.after = sizeOf(dir)
	return w, nil
}

func commit(ctx context.Context, sink tarn.Sink[*corev1.Pod], l *load, b tarn.Batch[*corev1.Pod]) error {
	b.Positions, b.LastContact = []tarn.Position{tarn.At(tarn.Version(strconv.Itoa(l.version)))}, l.now
	return sink.Commit(ctx, b)
}

func sizeOf(dir string) (n int64) {
	for _, name := range []string{"replica.db", "replica.db-wal"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil {
			n += info.Size()
		}
	}
	return n
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// ask asks about the past, three times each.
func ask(ctx context.Context, dir string, l *load) error {
	length := l.now.Sub(l.began)
	key := string(l.change(17, tarn.Update).Key)
	for _, q := range []struct {
		what string
		at   sqlite.Moment
		sql  string
	}{
		{"columns of all pods, early", sqlite.Moment{Time: l.began.Add(length / 10)}, "SELECT namespace, name, status, restarts FROM pods WHERE ready = 0"},
		{"columns of all pods, in the middle", sqlite.Moment{Time: l.began.Add(length / 2)}, "SELECT node, count(*), sum(restarts) FROM pods GROUP BY node"},
		{"columns of all pods, late", sqlite.Moment{Time: l.began.Add(length * 9 / 10)}, "SELECT namespace, name, status, restarts FROM pods WHERE ready = 0"},
		{"whole objects of all pods, in the middle", sqlite.Moment{Time: l.began.Add(length / 2)}, "SELECT sum(length(object)) FROM pods"},
		{"one pod's history, columns", sqlite.Moment{}, "SELECT version, operation, status, restarts, valid_from FROM pods_history WHERE key = '" + key + "'"},
		{"one pod's history, objects", sqlite.Moment{}, "SELECT version, operation, object, valid_from FROM pods_history WHERE key = '" + key + "'"},
		{"what changed in the last second", sqlite.Moment{}, fmt.Sprintf("SELECT key, version, status FROM pods_history WHERE valid_from > %d", l.now.Unix()-1)},
	} {
		for range 3 {
			began := time.Now()
			result, err := q.at.Query(ctx, dir, q.sql, sqlite.Limits{Rows: 1 << 20, Bytes: 256 << 20, Time: time.Minute})
			if err != nil {
				return fmt.Errorf("%s: %w", q.what, err)
			}
			fmt.Printf("%-45s %8.1f ms  %d rows\n", q.what, float64(time.Since(began).Microseconds())/1000, len(result.Rows))
		}
	}
	reader, err := sqlite.OpenReader(dir, nil)
	if err != nil {
		return err
	}
	defer reader.Close()
	for range 3 {
		began, n := time.Now(), 0
		for _, err := range reader.Log("pods").Of(ctx, tarn.Key(key)) {
			if err != nil {
				return err
			}
			n++
		}
		fmt.Printf("%-45s %8.1f ms  %d states\n", "one pod's history, from Go", float64(time.Since(began).Microseconds())/1000, n)
	}
	place, err := reader.Log("pods").AtTime(ctx, l.began.Add(length/2))
	if err != nil {
		return err
	}
	began, n := time.Now(), 0
	for _, err := range reader.Log("pods").AsOf(ctx, place) {
		if err != nil {
			return err
		}
		n++
	}
	fmt.Printf("%-45s %8.1f ms  %d states\n", "bytes of all pods, from Go", float64(time.Since(began).Microseconds())/1000, n)
	return nil
}
