package main

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/tkrajina/go-reflector/reflector"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tarnproject/tarn/bench/report"
	"github.com/tarnproject/tarn/fieldpath"
)

// fieldRead is a field of a pod, with the names that lead to it in JSON and in Go.
type fieldRead struct {
	path         string
	json, golang []string
	want         string
}

var fieldsRead = []fieldRead{
	{"spec.nodeName", []string{"spec", "nodeName"}, []string{"Spec", "NodeName"}, "node-1"},
	{"metadata.labels[app]", []string{"metadata", "labels", "app"}, []string{"ObjectMeta", "Labels", "app"}, "web"},
	{"status.containerStatuses[0].restartCount", []string{"status", "containerStatuses", "0", "restartCount"}, []string{"Status", "ContainerStatuses", "0", "RestartCount"}, "3"},
}

const (
	plainReflect = "reflect"
	theHelper    = "go-reflector"
	ourPaths     = "tarn fieldpath"
)

var fieldPathTrial = trial{
	name: "fieldpath", objects: 1, extra: true,
	doc: "Single fields of a pod are read: by plain reflection, which looks for the names in the JSON tags each time; by go-reflector, which caches what it knows of a type, and goes by the names in Go; and by our paths. The pod is a struct, and then decoded JSON.",
	entries: []runner{
		{plainReflect, "", measureFields(func(f fieldRead, object any, _ bool) (func(), func() any) {
			var found reflect.Value
			return func() { found = walkReflect(reflect.ValueOf(object), f.json) }, func() any { return found }
		})},
		{theHelper, plainReflect, measureFields(func(f fieldRead, object any, decoded bool) (func(), func() any) {
			names := f.golang
			if decoded {
				names = f.json
			}
			var found any
			return func() { found = walkHelper(object, names) }, func() any { return found }
		})},
		{ourPaths, plainReflect, measureFields(func(f fieldRead, object any, _ bool) (func(), func() any) {
			path := fieldpath.MustParse(f.path)
			var found fieldpath.Value
			return func() { found, _ = path.First(object) }, func() any { return found }
		})},
	},
	targets: fieldTargets(),
}

func timeOf(form, path string) string   { return form + ": " + path }
func allocsOf(form, path string) string { return form + ": " + path + ", allocations" }

const asStruct, asJSON = "struct", "decoded JSON"

func fieldTargets() (targets []report.Target) {
	for _, f := range fieldsRead {
		for _, form := range []string{asStruct, asJSON} {
			targets = slices.Concat(targets,
				limits(ourPaths, plainReflect, map[string]float64{timeOf(form, f.path): 1}),
				within(ourPaths, map[string]float64{allocsOf(form, f.path): noAllocation}))
		}
	}
	return targets
}

// measureFields times the functions that prepare makes: one that reads, and one
// that returns the last value.
func measureFields(prepare func(f fieldRead, object any, decoded bool) (read func(), found func() any)) func(context.Context, *meter) error {
	return func(_ context.Context, m *meter) error {
		pod := fieldPod()
		decoded, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
		if err != nil {
			return err
		}
		for _, form := range []string{asStruct, asJSON} {
			object := any(pod)
			if form == asJSON {
				object = decoded
			}
			for _, f := range fieldsRead {
				read, found := prepare(f, object, form == asJSON)
				m.record(timeOf(form, f.path), best(read), report.Seconds)
				allocations, _ := garbage(10_000, read)
				m.record(allocsOf(form, f.path), allocations, report.Fraction)
				if got := fmt.Sprint(found()); got != f.want {
					return fmt.Errorf("%s of %s is %q, want %q", f.path, form, got, f.want)
				}
			}
		}
		return nil
	}
}

func fieldPod() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-0", Namespace: "shop", Labels: map[string]string{"app": "web", "tier": "front"}}}
	pod.Spec.NodeName = "node-1"
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", RestartCount: 3}}
	return pod
}

// walkReflect goes down by names as they are in JSON.
func walkReflect(v reflect.Value, names []string) reflect.Value {
	for _, name := range names {
		for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
			v = v.Elem()
		}
		switch v.Kind() {
		case reflect.Map:
			v = v.MapIndex(reflect.ValueOf(name))
		case reflect.Slice:
			i, _ := strconv.Atoi(name)
			v = v.Index(i)
		default:
			v = fieldByTag(v, name)
		}
	}
	return v
}

func fieldByTag(v reflect.Value, name string) reflect.Value {
	t := v.Type()
	for i := range t.NumField() {
		if tag, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); tag == name {
			return v.Field(i)
		}
	}
	return reflect.Value{}
}

// walkHelper goes down as go-reflector does.
func walkHelper(object any, names []string) any {
	for _, name := range names {
		o := reflector.New(object)
		switch {
		case o.IsMap():
			object, _ = o.GetByKey(name)
		case o.IsGettableByIndex():
			i, _ := strconv.Atoi(name)
			object, _ = o.GetByIndex(i)
		default:
			object, _ = o.Field(name).Get()
		}
	}
	return object
}
