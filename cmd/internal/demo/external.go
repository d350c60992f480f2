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

// WatchOthers makes the workload react to changes by other users, such as somebody
// with kubectl: a Deployment that is created, scaled, deleted or given another
// image, and a deleted pod or namespace. It returns after ctx has ended and all
// its goroutines have.
//
// These changes are not part of the simulation: a seed reproduces a run only while
// no other user writes.
func (w *Workload) WatchOthers(ctx context.Context, cfg *rest.Config) error {
	var following sync.WaitGroup
	defer following.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	quiet := kube.Logger(slog.New(slog.DiscardHandler))
	deployments, err := kube.Reflect[*appsv1.Deployment](ctx, cfg, quiet)
	if err != nil {
		return err
	}
	follow(ctx, &following, deployments, w, w.onDeployment)
	pods, err := kube.ReflectMetadata(ctx, cfg, corev1.SchemeGroupVersion.WithResource("pods"), quiet)
	if err != nil {
		return err
	}
	follow(ctx, &following, pods, w, w.onPod)
	namespaces, err := kube.ReflectMetadata(ctx, cfg, corev1.SchemeGroupVersion.WithResource("namespaces"), quiet)
	if err != nil {
		return err
	}
	follow(ctx, &following, namespaces, w, w.onNamespace)
	<-ctx.Done()
	return nil
}

// follow passes changes to the goroutine of the workload.
func follow[T any](ctx context.Context, following *sync.WaitGroup, replica *tarn.Replica[T], w *Workload, handle func(tarn.Change[T])) {
	following.Go(func() {
		for change := range replica.Changes(ctx) {
			select {
			case w.external <- func() { handle(change) }:
			case <-ctx.Done():
			}
		}
		<-replica.Done()
	})
}

// onDeployment applies what another user wrote. It recognizes that by the
// generation: the server counts every change of a spec, and the app counts its own.
func (w *Workload) onDeployment(change tarn.Change[*appsv1.Deployment]) {
	seen := change.Object
	a := w.find(seen)
	switch {
	case change.Type == tarn.Delete || seen.DeletionTimestamp != nil:
		if a != nil && a.deployment.UID == seen.UID {
			a.markDeleted()
		}
	case !valid(seen):
	case a == nil:
		w.adopt(seen)
	case a.deployment.UID == seen.UID && seen.Generation > a.generation:
		a.applySpec(seen)
	}
}

// valid checks what a real server would check; the embedded one does not validate
// specs.
func valid(seen *appsv1.Deployment) bool {
	spec := seen.Spec
	return spec.Replicas != nil && *spec.Replicas >= 0 && spec.Selector != nil && len(spec.Template.Spec.Containers) > 0
}

func (w *Workload) find(seen *appsv1.Deployment) *app {
	for _, a := range w.apps {
		if !a.deleted && a.namespace == seen.Namespace && a.name == seen.Name {
			return a
		}
	}
	return nil
}

// applySpec applies a spec that another user wrote.
func (a *app) applySpec(seen *appsv1.Deployment) {
	a.generation = seen.Generation
	before, status := a.deployment, a.deployment.Status
	a.deployment = seen.DeepCopy()
	a.deployment.Status = status
	if equality.Semantic.DeepEqual(before.Spec, seen.Spec) {
		return
	}
	a.usualReplicas = max(1, *seen.Spec.Replicas)
	if !equality.Semantic.DeepEqual(before.Spec.Template, seen.Spec.Template) {
		a.newRevision()
	}
	a.enqueue()
}

// adopt manages a Deployment that another user created.
func (w *Workload) adopt(seen *appsv1.Deployment) {
	a := &app{
		w: w, identity: identity{namespace: seen.Namespace, name: seen.Name}, deployment: seen.DeepCopy(),
		usualReplicas: max(1, *seen.Spec.Replicas), generation: seen.Generation, release: [3]int{1, 0, 0},
	}
	w.apps = append(w.apps, a)
	a.newRevision()
}

// markDeleted removes everything that a deleted Deployment owned, as the garbage
// collector does.
func (a *app) markDeleted() {
	a.deleted = true
	a.enqueue()
}

func (w *Workload) onPod(change tarn.Change[*metav1.PartialObjectMetadata]) {
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
					p.untrack()
				case !p.terminating:
					p.terminate()
					a.enqueue()
				}
				return
			}
		}
	}
}

// onNamespace stops writing to a namespace that is being deleted.
func (w *Workload) onNamespace(change tarn.Change[*metav1.PartialObjectMetadata]) {
	name := change.Object.Name
	if change.Type != tarn.Delete && change.Object.DeletionTimestamp == nil {
		delete(w.terminating, name)
		return
	}
	w.terminating[name] = true
	kept := w.databases[:0]
	for _, d := range w.databases {
		if d.object.GetNamespace() != name {
			kept = append(kept, d)
		}
	}
	w.databases = kept
}
