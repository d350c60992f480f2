package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/bench/podset"
	"github.com/tarnproject/tarn/bench/report"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/sqlite"
	"github.com/tarnproject/tarn/sqlite/ondisk"
)

const fileName = "replica.db"

// build writes a directory, and prints what that costs.
func build(ctx context.Context, path string) error {
	set, err := podset.Read(*data, podset.ReplicaSets, *pods)
	if err != nil {
		return err
	}
	s, err := newScene(set)
	if err != nil {
		return err
	}
	fmt.Printf("%d pods, %d nodes, %d replicasets and %d deployments in %d clusters\n", len(s.pods), len(s.nodes), len(s.sets), len(s.deployments), *clusters)
	db, err := sqlite.Open(path, sqlite.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer db.Close()
	err = write(ctx, db, s.nodes)
	if err == nil {
		err = write(ctx, db, s.sets)
	}
	if err == nil {
		err = write(ctx, db, s.deployments)
	}
	if err == nil {
		err = writePods(ctx, db, s.pods)
	}
	if err != nil {
		return err
	}
	if err := db.Close(); err != nil {
		return err
	}
	info, err := os.Stat(filepath.Join(path, fileName))
	if err != nil {
		return err
	}
	fmt.Printf("the file has %.1f MiB\n", float64(info.Size())/(1<<20))
	return nil
}

func write[T metav1.Object](ctx context.Context, db *sqlite.DB, all []placed[T]) error {
	sink, err := open[T](ctx, db)
	if err != nil {
		return err
	}
	defer sink.Close()
	return sink.Commit(ctx, whole(all))
}

// writePods writes pods and then status updates of them, and prints the CPU of both.
func writePods(ctx context.Context, db *sqlite.DB, all []placed[*corev1.Pod]) error {
	sink, err := open[*corev1.Pod](ctx, db)
	if err != nil {
		return err
	}
	defer sink.Close()
	runtime.GC()
	from := report.CPUTime()
	if err := sink.Commit(ctx, whole(all)); err != nil {
		return err
	}
	fmt.Printf("first state: %.1f µs of CPU for each pod\n", perItem(report.CPUTime()-from, len(all)))
	const group = 1000
	spent, version := time.Duration(0), 1_000_000_000
	for done := 0; done < *updates; done += group {
		b := tarn.Batch[*corev1.Pod]{LastContact: time.Now()}
		for i := range group {
			p := &all[((done+i)*7919)%len(all)]
			version++
			p.object = restarted(p.object, version)
			b.Changes = append(b.Changes, tarn.Change[*corev1.Pod]{Type: tarn.Update, Key: p.key, Object: p.object, Version: tarn.Version(strconv.Itoa(version))})
			b.Positions = append(b.Positions, position(p.key, version))
		}
		from := report.CPUTime()
		if err := sink.Commit(ctx, b); err != nil {
			return err
		}
		spent += report.CPUTime() - from
	}
	fmt.Printf("updates of a status: %.1f µs of CPU each\n", perItem(spent, *updates))
	return nil
}

// restarted is a pod whose first container restarted, and which is ready if it was not.
func restarted(pod *corev1.Pod, version int) *corev1.Pod {
	next := *pod
	next.ResourceVersion = strconv.Itoa(version)
	next.Status.ContainerStatuses = slices.Clone(pod.Status.ContainerStatuses)
	if len(next.Status.ContainerStatuses) > 0 {
		next.Status.ContainerStatuses[0].RestartCount++
	}
	next.Status.Conditions = slices.Clone(pod.Status.Conditions)
	for i := range next.Status.Conditions {
		if c := &next.Status.Conditions[i]; c.Type == corev1.PodReady {
			c.Status = map[corev1.ConditionStatus]corev1.ConditionStatus{corev1.ConditionTrue: corev1.ConditionFalse}[c.Status]
			if c.Status == "" {
				c.Status = corev1.ConditionTrue
			}
		}
	}
	return &next
}

func position(key tarn.Key, version int) tarn.Position {
	cluster, _ := kube.SplitCluster(key)
	at := tarn.At(tarn.Version(strconv.Itoa(version)))
	at.Section = cluster
	return at
}

// whole is a first state of all clusters.
func whole[T metav1.Object](all []placed[T]) tarn.Batch[T] {
	b := tarn.Batch[T]{Whole: true, LastContact: time.Now()}
	for _, p := range all {
		b.Changes = append(b.Changes, tarn.Change[T]{Type: tarn.Add, Key: p.key, Object: p.object, Version: tarn.Version(p.object.GetResourceVersion())})
	}
	for i := range *clusters {
		b.Positions = append(b.Positions, position(tarn.Key(clusterName(i)+"/"), 1))
	}
	return b
}

// open returns the sink of a copy of several clusters.
func open[T metav1.Object](ctx context.Context, db *sqlite.DB) (tarn.Sink[T], error) {
	server := apiserver.New(apiserver.Options{AnyNamespace: true})
	defer server.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var of kube.Origin
	copied, err := kube.Reflect[T](ctx, server.Config(), kube.Sink(func(o kube.Origin) (tarn.Sink[T], error) {
		of = o
		return idle[T]{}, nil
	}))
	if err != nil {
		return nil, err
	}
	cancel()
	<-copied.Done()
	of.Cluster = func(string) *kube.Client { return nil }
	return ondisk.Sink[T](db, of)
}

// idle is a sink that keeps nothing.
type idle[T any] struct{}

func (idle[T]) Policy() tarn.SinkPolicy[T]                            { return tarn.SinkPolicy[T]{Name: "idle"} }
func (idle[T]) Open(context.Context, func() error) (tarn.Kept, error) { return tarn.Kept{}, nil }
func (idle[T]) Commit(context.Context, tarn.Batch[T]) error           { return nil }
func (idle[T]) Close()                                                {}

func perItem(spent time.Duration, n int) float64 {
	return float64(spent.Nanoseconds()) / 1e3 / float64(n)
}
