package demo

import (
	"context"
	"log/slog"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/kube"
)

// Heed lets the workload notice what others do to the cluster, somebody with
// kubectl above all: a Deployment that is scaled, given another image, deleted or
// new, a pod or a namespace that is deleted. It returns when ctx has ended and
// nothing is left behind.
//
// It follows the server beside the simulation, which is why a seed tells the
// whole story only while nobody interferes.
func (w *Workload) Heed(ctx context.Context, cfg *rest.Config) error {
	var following sync.WaitGroup
	defer following.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	quiet := kube.Logger(slog.New(slog.DiscardHandler))
	deployments, err := kube.Reflect[*appsv1.Deployment](ctx, cfg, quiet)
	if err != nil {
		return err
	}
	follow(ctx, &following, deployments, w, w.heedDeployment)
	pods, err := kube.ReflectMetadata(ctx, cfg, corev1.SchemeGroupVersion.WithResource("pods"), quiet)
	if err != nil {
		return err
	}
	follow(ctx, &following, pods, w, w.heedPod)
	namespaces, err := kube.ReflectMetadata(ctx, cfg, corev1.SchemeGroupVersion.WithResource("namespaces"), quiet)
	if err != nil {
		return err
	}
	follow(ctx, &following, namespaces, w, w.heedNamespace)
	<-ctx.Done()
	return nil
}

// follow hands changes over to the goroutine of the workload.
func follow[T any](ctx context.Context, following *sync.WaitGroup, replica *tarn.Replica[T], w *Workload, heed func(tarn.Change[T])) {
	following.Go(func() {
		for change := range replica.Changes(ctx) {
			select {
			case w.visitors <- func() { heed(change) }:
			case <-ctx.Done():
			}
		}
		<-replica.Done()
	})
}

// heedDeployment takes over what somebody else wrote. That it was somebody else
// is known by the generation: the server counts each change of a spec, and so
// does the app for its own.
func (w *Workload) heedDeployment(change tarn.Change[*appsv1.Deployment]) {
	seen := change.Object
	a := w.find(seen)
	switch {
	case change.Type == tarn.Delete || seen.DeletionTimestamp != nil:
		if a != nil && a.deployment.UID == seen.UID {
			a.retire()
		}
	case !sensible(seen):
	case a == nil:
		w.adopt(seen)
	case a.deployment.UID == seen.UID && seen.Generation > a.generation:
		a.take(seen)
	}
}

// sensible is what a real server would have taken; this one looks at no specs.
func sensible(seen *appsv1.Deployment) bool {
	spec := seen.Spec
	return spec.Replicas != nil && *spec.Replicas >= 0 && spec.Selector != nil && len(spec.Template.Spec.Containers) > 0
}

func (w *Workload) find(seen *appsv1.Deployment) *app {
	for _, a := range w.apps {
		if !a.retired && a.namespace == seen.Namespace && a.name == seen.Name {
			return a
		}
	}
	return nil
}

// take follows another spec.
func (a *app) take(seen *appsv1.Deployment) {
	a.generation = seen.Generation
	before, status := a.deployment, a.deployment.Status
	a.deployment = seen.DeepCopy()
	a.deployment.Status = status
	if equality.Semantic.DeepEqual(before.Spec, seen.Spec) {
		return
	}
	a.usual = max(1, *seen.Spec.Replicas)
	if !equality.Semantic.DeepEqual(before.Spec.Template, seen.Spec.Template) {
		a.renew()
	}
	a.wake()
}

// adopt looks after a Deployment that somebody made.
func (w *Workload) adopt(seen *appsv1.Deployment) {
	a := &app{
		w: w, identity: identity{namespace: seen.Namespace, name: seen.Name}, deployment: seen.DeepCopy(),
		usual: max(1, *seen.Spec.Replicas), generation: seen.Generation, release: [3]int{1, 0, 0},
	}
	w.apps = append(w.apps, a)
	a.renew()
}

// retire lets everything go that a Deployment had, as the garbage collector does.
func (a *app) retire() {
	a.retired = true
	a.wake()
}

func (w *Workload) heedPod(change tarn.Change[*metav1.PartialObjectMetadata]) {
	seen := change.Object
	if change.Type != tarn.Delete && seen.DeletionTimestamp == nil {
		return
	}
	for _, a := range w.apps {
		for _, set := range a.sets {
			for _, p := range set.pods {
				if p.object.UID != seen.UID {
					continue
				}
				switch {
				case change.Type == tarn.Delete:
					p.forget()
				case !p.leaving:
					p.leave()
					a.wake()
				}
				return
			}
		}
	}
}

// heedNamespace writes nothing any more to a namespace that goes.
func (w *Workload) heedNamespace(change tarn.Change[*metav1.PartialObjectMetadata]) {
	name := change.Object.Name
	if change.Type != tarn.Delete && change.Object.DeletionTimestamp == nil {
		delete(w.closed, name)
		return
	}
	w.closed[name] = true
	kept := w.databases[:0]
	for _, d := range w.databases {
		if d.object.GetNamespace() != name {
			kept = append(kept, d)
		}
	}
	w.databases = kept
}
