package informers_test

import (
	"context"
	"fmt"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tarnproject/tarn/cache"
	"github.com/tarnproject/tarn/informers"
)

// One line for each custom resource makes a generated factory use informers of
// package cache. What stands for the generated code is below the example.
func ExampleFor() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	factory := NewLakeFactory(fakeLakes{named("como"), named("garda")}, time.Hour)

	informer := factory.InformerFor(&Lake{}, informers.For(
		func(c LakeClientset) LakeInterface { return c.LakesV1("") }, &Lake{}))

	go informer.RunWithContext(ctx)
	cache.WaitFor(ctx, "", informer.HasSyncedChecker())
	for _, name := range []string{"como", "garda", "maggiore"} {
		_, exists, _ := informer.GetIndexer().GetByKey(name)
		fmt.Println(name, exists)
	}
	// Output:
	// como true
	// garda true
	// maggiore false
}

// Lake and LakeList are a custom resource's types.
type (
	Lake struct {
		metav1.TypeMeta
		metav1.ObjectMeta
	}
	LakeList struct {
		metav1.TypeMeta
		metav1.ListMeta
		Items []Lake
	}
)

func (l *Lake) DeepCopyObject() runtime.Object {
	return &Lake{TypeMeta: l.TypeMeta, ObjectMeta: *l.ObjectMeta.DeepCopy()}
}

func (l *LakeList) DeepCopyObject() runtime.Object {
	c := &LakeList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for _, item := range l.Items {
		c.Items = append(c.Items, *item.DeepCopyObject().(*Lake))
	}
	return c
}

func named(name string) Lake { return Lake{ObjectMeta: metav1.ObjectMeta{Name: name}} }

// LakeClientset and LakeInterface are what client-gen makes of them.
type (
	LakeClientset interface {
		LakesV1(namespace string) LakeInterface
	}
	LakeInterface interface {
		List(ctx context.Context, opts metav1.ListOptions) (*LakeList, error)
		Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
	}
)

// fakeLakes is both of them, over lakes that never change.
type fakeLakes []Lake

func (f fakeLakes) LakesV1(string) LakeInterface { return f }

func (f fakeLakes) List(context.Context, metav1.ListOptions) (*LakeList, error) {
	return &LakeList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: f}, nil
}

func (f fakeLakes) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return watch.NewFake(), nil
}

func (fakeLakes) IsWatchListSemanticsUnSupported() bool { return true }

// LakeFactory is what informer-gen makes of them, as far as it matters here.
type LakeFactory struct {
	client    LakeClientset
	resync    time.Duration
	informers map[reflect.Type]cache.SharedIndexInformer
}

func NewLakeFactory(client LakeClientset, resync time.Duration) *LakeFactory {
	return &LakeFactory{client, resync, map[reflect.Type]cache.SharedIndexInformer{}}
}

// NewInformerFunc is declared by each generated factory for its clientset.
type NewInformerFunc func(LakeClientset, time.Duration) cache.SharedIndexInformer

func (f *LakeFactory) InformerFor(object runtime.Object, build NewInformerFunc) cache.SharedIndexInformer {
	t := reflect.TypeOf(object)
	if f.informers[t] == nil {
		f.informers[t] = build(f.client, f.resync)
	}
	return f.informers[t]
}
