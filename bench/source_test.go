package main

import (
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

func TestListHonoursLimitAndContinue(t *testing.T) {
	src := newSource(smallPod, 7, false, 1)
	var versions []string
	var pages []int
	o := metav1.ListOptions{Limit: 3}
	for {
		object, err := src.List(o)
		if err != nil {
			t.Fatal(err)
		}
		page := object.(*corev1.PodList)
		if page.ResourceVersion != version(6) {
			t.Errorf("page version %s, want %s", page.ResourceVersion, version(6))
		}
		pages = append(pages, len(page.Items))
		for _, pod := range page.Items {
			versions = append(versions, pod.ResourceVersion)
		}
		if o.Continue = page.Continue; o.Continue == "" {
			break
		}
	}
	if want := []int{3, 3, 1}; !slices.Equal(pages, want) {
		t.Errorf("pages of %v items, want %v", pages, want)
	}
	if len(versions) != 7 || !slices.IsSorted(versions) || len(slices.Compact(versions)) != 7 {
		t.Errorf("pods %v, want all seven once and in order", versions)
	}
	if _, err := src.List(metav1.ListOptions{Continue: "?"}); err == nil {
		t.Error("a foreign continue token was taken")
	}
}

func TestWatchBeginsWithAllIfAsked(t *testing.T) {
	src := newSource(smallPod, 2, true, 10)
	if src.IsWatchListSemanticsUnSupported() {
		t.Error("the source denies that it can stream")
	}
	w, err := src.Watch(metav1.ListOptions{SendInitialEvents: new(true)})
	if err != nil {
		t.Fatal(err)
	}
	st, err := src.nextWatch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := st.send(src.touch()); err != nil {
		t.Fatal(err)
	}
	if err := st.expire(); err != nil {
		t.Fatal(err)
	}
	type seen struct {
		kind    watch.EventType
		version string
		end     bool
	}
	var got []seen
	var last watch.Event
	for last = range w.ResultChan() {
		if pod, ok := last.Object.(*corev1.Pod); ok {
			got = append(got, seen{last.Type, pod.ResourceVersion, pod.Annotations[metav1.InitialEventsAnnotationKey] == "true"})
		}
	}
	want := []seen{
		{watch.Added, version(0), false}, {watch.Added, version(1), false},
		{watch.Bookmark, version(1), true}, {watch.Modified, version(2), false},
	}
	if !slices.Equal(got, want) {
		t.Errorf("events %v, want %v", got, want)
	}
	if err := apierrors.FromObject(last.Object); last.Type != watch.Error || !apierrors.IsResourceExpired(err) {
		t.Errorf("the watch ended with %s %v, want the error Expired", last.Type, err)
	}
}

func TestAChangeStaysInTheSource(t *testing.T) {
	src := newSource(smallPod, 3, false, 1)
	src.touch()
	object, err := src.List(metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	list := object.(*corev1.PodList)
	if list.ResourceVersion != version(3) || list.Items[0].ResourceVersion != version(3) || list.Items[1].ResourceVersion != version(1) {
		t.Errorf("list at %s with %s and %s, want %s with %s and %s", list.ResourceVersion,
			list.Items[0].ResourceVersion, list.Items[1].ResourceVersion, version(3), version(3), version(1))
	}
}

func TestAStoppedWatchReleasesItsSender(t *testing.T) {
	src := newSource(smallPod, 1, true, 0)
	w, err := src.Watch(metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	st, err := src.nextWatch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.Stop()
	w.Stop()
	if err := st.send(src.touch()); !errors.Is(err, errStopped) {
		t.Errorf("send on a stopped watch: %v, want %v", err, errStopped)
	}
}
