package fieldpath_test

import (
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tarnproject/tarn/fieldpath"
)

var benchPaths = []string{"spec.nodeName", "metadata.labels[app]", "status.containerStatuses[0].ready", "spec.containers[*].image"}

func BenchmarkPath(b *testing.B) {
	pod := aPod()
	values := make([]fieldpath.Value, 0, 4)
	for _, text := range benchPaths {
		b.Run(text, func(b *testing.B) {
			p := fieldpath.MustParse(text)
			b.ReportAllocs()
			for b.Loop() {
				if p.Multi() {
					values, _ = p.Append(values[:0], pod)
				} else {
					_, _ = p.First(pod)
				}
			}
		})
	}
}

func BenchmarkAccessor(b *testing.B) {
	pod := aPod()
	for _, text := range benchPaths[:3] {
		b.Run(text, func(b *testing.B) {
			a, err := fieldpath.Compile[*corev1.Pod](text)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				_ = a.First(pod)
			}
		})
	}
}

func BenchmarkPathOfJSON(b *testing.B) {
	object := any(&unstructured.Unstructured{Object: toJSON(b, aPod())})
	for _, text := range benchPaths[:3] {
		b.Run(text, func(b *testing.B) {
			p := fieldpath.MustParse(text)
			b.ReportAllocs()
			for b.Loop() {
				_, _ = p.First(object)
			}
		})
	}
}

// BenchmarkPlainReflect reads without compiling: it looks each name up in the tags,
// each time.
func BenchmarkPlainReflect(b *testing.B) {
	pod := aPod()
	for text, names := range map[string][]string{"spec.nodeName": {"spec", "nodeName"}, "metadata.labels[app]": {"metadata", "labels", "app"}} {
		b.Run(text, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if reflectWalk(reflect.ValueOf(pod), names).Len() == 0 {
					b.Fatal("nothing found")
				}
			}
		})
	}
}

func reflectWalk(v reflect.Value, names []string) reflect.Value {
	for _, name := range names {
		if v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		if v.Kind() == reflect.Map {
			v = v.MapIndex(reflect.ValueOf(name))
			continue
		}
		for i := range v.NumField() {
			if tag, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ","); tag == name {
				v = v.Field(i)
				break
			}
		}
	}
	return v
}

func BenchmarkCompile(b *testing.B) {
	pod := aPod()
	for b.Loop() {
		if _, err := fieldpath.MustParse("spec.containers[*].image").First(pod); err != nil {
			b.Fatal(err)
		}
	}
}
