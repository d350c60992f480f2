package cli

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/changelog"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// A stage is where the past is replayed: an embedded API server.
type stage interface {
	Import(objects ...runtime.Object) error
	Drop(objects ...runtime.Object) error
	Register(kinds ...apiserver.Kind) error
}

// player replays a directory's past on a stage: first the state as of a time, then each
// change at the time when the mirror received it.
//
// Across resources the order is the order in which the mirror received changes, since they
// have no other order.
type player struct {
	directory *mirror.Directory
	resources []mirror.Resource
	options   mirror.Options
	stage     stage
	// since and until bound what is shown; speed is how many times faster than the original,
	// 0 for as fast as possible.
	since, until time.Time
	speed        float64
	// onGap receives gaps when the player reaches them, onFailure what the stage refused.
	onGap     func(mirror.Resource, changelog.Gap)
	onFailure func(mirror.Resource, changelog.Typed[mirror.Object], error)

	objects, changes, failures int
	logs                       []*resourceLog
}

// resourceLog has what happened to one resource, in order; head is the next entry.
type resourceLog struct {
	resource mirror.Resource
	place    changelog.Place
	next     func() (changelog.Typed[mirror.Object], error, bool)
	stop     func()
	head     changelog.Typed[mirror.Object]
	more     bool
}

// find finds the beginning of the replay in each log, before anything is shown.
func (p *player) find(ctx context.Context) error {
	p.resources = slices.Clone(p.resources)
	slices.SortStableFunc(p.resources, func(a, b mirror.Resource) int { return shownFirst(a) - shownFirst(b) })
	for _, r := range p.resources {
		log, err := p.directory.Log(r)
		if err != nil {
			return err
		}
		t := &resourceLog{resource: r}
		if t.place, err = log.AtTime(ctx, p.since); err != nil {
			return err
		}
		bounds, err := log.Bounds(ctx)
		if err != nil {
			return err
		}
		if t.place.Seq < bounds.Thinned {
			return fmt.Errorf("%s: %w: states of that time were thinned out, so not every change could be shown", r.Name(), changelog.ErrExpired)
		}
		p.logs = append(p.logs, t)
	}
	return nil
}

// shownFirst sorts definitions before namespaces, and namespaces before their content.
func shownFirst(r mirror.Resource) int {
	switch r.Name() {
	case definitions:
		return 0
	case "namespaces":
		return 1
	}
	return 2
}

const definitions = "customresourcedefinitions.apiextensions.k8s.io"

// begin shows the state as of the beginning.
func (p *player) begin(ctx context.Context) error {
	defined := map[string]bool{}
	for _, t := range p.logs {
		if err := p.register(t.resource, defined); err != nil {
			return err
		}
		for e, err := range p.directory.AsOf(ctx, t.resource, t.place, p.options) {
			switch {
			case err != nil:
				return err
			case e.Gap != nil:
				p.onGap(t.resource, *e.Gap)
			case p.show(t.resource, e):
				p.objects++
				defined[e.Object.GetName()] = t.resource.Name() == definitions || defined[e.Object.GetName()]
			}
		}
	}
	return nil
}

// register makes the stage serve a custom resource that no definition in the directory
// defines.
func (p *player) register(r mirror.Resource, defined map[string]bool) error {
	if r.Name() == definitions || r.GVR.Group == "" || defined[r.Name()] || scheme.Scheme.Recognizes(r.GVK()) {
		return nil
	}
	err := p.stage.Register(apiserver.Kind{Group: r.GVR.Group, Version: r.GVR.Version, Kind: r.Kind, Plural: r.GVR.Resource, Cluster: !r.Namespaced})
	if err != nil {
		return fmt.Errorf("%s cannot be served: %w", r.Name(), err)
	}
	return nil
}

// show puts a state on the stage.
func (p *player) show(r mirror.Resource, e changelog.Typed[mirror.Object]) bool {
	object := &unstructured.Unstructured{}
	if e.Object != nil {
		object = e.Object.DeepCopy()
	} else { // deleted, and never seen
		key := string(e.Key)
		slash := strings.LastIndexByte(key, '/')
		object.SetNamespace(key[:max(slash, 0)])
		object.SetName(key[slash+1:])
	}
	if object.GetKind() == "" {
		object.SetGroupVersionKind(r.GVK())
	}
	err := error(nil)
	if e.Operation == changelog.Deleted {
		err = p.stage.Drop(object)
	} else {
		err = p.stage.Import(object)
	}
	if err != nil {
		p.failures++
		p.onFailure(r, e, err)
	}
	return err == nil
}

// play shows the changes after the beginning, and returns when it has shown all of them.
func (p *player) play(ctx context.Context) error {
	for _, t := range p.logs {
		t.next, t.stop = iter.Pull2(p.directory.After(ctx, t.resource, t.place.Seq, p.options))
		defer t.stop()
		if err := p.advance(t); err != nil {
			return err
		}
	}
	begun := time.Now()
	for t := p.first(); t != nil; t = p.first() {
		if err := p.wait(ctx, begun, t.time()); err != nil {
			return err
		}
		if t.head.Gap != nil {
			p.onGap(t.resource, *t.head.Gap)
		} else if p.show(t.resource, t.head) {
			p.changes++
		}
		if err := p.advance(t); err != nil {
			return err
		}
	}
	return nil
}

// advance reads the next entry of a resourceLog.
func (p *player) advance(t *resourceLog) (err error) {
	t.head, err, t.more = t.next()
	t.more = t.more && !t.time().After(p.until)
	return err
}

// time is the time of the next entry.
func (t *resourceLog) time() time.Time {
	if t.head.Gap != nil {
		return t.head.Gap.Since
	}
	return t.head.Heard
}

// first returns the resourceLog whose next entry was received first; nil if all have ended.
func (p *player) first() (found *resourceLog) {
	for _, t := range p.logs {
		if t.more && (found == nil || t.time().Before(found.time())) {
			found = t
		}
	}
	return found
}

// wait waits until a time of the past is due.
func (p *player) wait(ctx context.Context, begun, at time.Time) error {
	if p.speed == 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(time.Until(begun.Add(time.Duration(float64(at.Sub(p.since)) / p.speed))))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// entryName names an entry that could not be shown.
func entryName(r mirror.Resource, e changelog.Typed[mirror.Object]) string {
	return strings.Join([]string{target{resource: r}.key(e.Key), "at version", string(e.Version)}, " ")
}
