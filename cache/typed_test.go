//go:build !tarn_client_go_0_36

package cache

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	upstream "k8s.io/client-go/tools/cache"
)

type typedObject = *metav1.PartialObjectMetadata

// typedLog writes down what a typed handler is given.
type typedLog struct{ lines []string }

func (l *typedLog) OnAdd(obj typedObject, initial bool) {
	l.lines = append(l.lines, fmt.Sprintf("add %s %v", obj.Name, initial))
}

func (l *typedLog) OnUpdate(oldObj, newObj typedObject) {
	l.lines = append(l.lines, fmt.Sprintf("update %s %s", oldObj.Name, newObj.Name))
}

func (l *typedLog) OnDelete(obj DeletedObject[typedObject]) {
	l.lines = append(l.lines, fmt.Sprintf("delete %s, object %v, known %v", obj.GetKey(), obj.OptionalObj != nil, obj.FinalStateUnknown == nil))
}

// onlyRegisters is an informer that keeps what it is given.
type onlyRegisters struct {
	SharedIndexInformer
	handler  ResourceEventHandler
	options  HandlerOptions
	indexers Indexers
	indexer  Indexer
}

func (i *onlyRegisters) AddEventHandlerWithOptions(handler ResourceEventHandler, options HandlerOptions) (ResourceEventHandlerRegistration, error) {
	i.handler, i.options = handler, options
	return nil, nil
}

func (i *onlyRegisters) AddIndexers(indexers Indexers) error { i.indexers = indexers; return nil }
func (i *onlyRegisters) GetIndexer() Indexer                 { return i.indexer }

func TestTypedHandler(t *testing.T) {
	informer, log, period := &onlyRegisters{}, &typedLog{}, time.Minute
	typed := NewTypedSharedIndexInformer[typedObject](informer)
	if _, err := typed.AddTypedEventHandler(log, HandlerOptions{ResyncPeriod: &period}); err != nil || informer.options.ResyncPeriod != &period {
		t.Fatalf("error %v, options %v", err, informer.options)
	}
	informer.handler.OnAdd(listed("x", "a", ""), true)
	informer.handler.OnUpdate(listed("x", "a", ""), listed("x", "b", ""))
	informer.handler.OnDelete(listed("x", "b", ""))
	informer.handler.OnDelete(DeletedFinalStateUnknown{Key: "x/c", Obj: listed("x", "c", "")})
	informer.handler.OnDelete(DeletedFinalStateUnknown{Key: "x/d"})
	want := []string{"add a true", "update a b", "delete x/b, object true, known true", "delete x/c, object true, known false", "delete x/d, object false, known false"}
	if diff := cmp.Diff(want, log.lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	informer.handler = nil
	if _, err := typed.AddTypedEventHandler(log); err != nil || informer.handler == nil || informer.options != (HandlerOptions{}) {
		t.Errorf("without options: error %v, options %v", err, informer.options)
	}
	informer.handler = nil
	if _, err := typed.AddTypedEventHandler(log, HandlerOptions{}, HandlerOptions{}); err == nil || informer.handler != nil {
		t.Error("two options were accepted")
	}
}

func TestTypedIndexer(t *testing.T) {
	app := TypedIndexers[typedObject]{"app": func(obj typedObject) ([]string, error) { return []string{obj.Labels["app"]}, nil }}
	indexer := NewIndexer(MetaNamespaceKeyFunc, Indexers{})
	informer := &onlyRegisters{indexer: indexer}
	informerOfObjects := NewTypedSharedIndexInformer[typedObject](informer)
	typed := informerOfObjects.GetTypedIndexer()
	if err := typed.AddTypedIndexers(app); err != nil {
		t.Fatal(err)
	}
	a, b := listed("x", "a", "web"), listed("x", "b", "db")
	for _, obj := range []any{a, b} {
		if err := indexer.Add(obj); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := typed.TypedIndex("app", a); err != nil || len(got) != 1 || got[0] != a {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := typed.ByTypedIndex("app", "db"); err != nil || len(got) != 1 || got[0] != b {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := typed.ByTypedIndex("none", "db"); err == nil {
		t.Error("an index that is not there gives no error")
	}
	if _, err := (typedIndexer[*metav1.Status]{indexer}).ByTypedIndex("app", "db"); err == nil || !strings.Contains(err.Error(), "typed for *v1.Status, but was given a *v1.PartialObjectMetadata") {
		t.Errorf("another type gives %v", err)
	}
	if err := informerOfObjects.AddTypedIndexers(app); err != nil || len(informer.indexers) != 1 {
		t.Errorf("the informer got %d indexers, %v", len(informer.indexers), err)
	}
}

func TestTypedIndexFunctionRefusesOtherTypes(t *testing.T) {
	untyped := TypedIndexersToIndexers(TypedIndexers[typedObject]{"name": func(obj typedObject) ([]string, error) { return []string{obj.Name}, nil }})
	if values, err := untyped["name"](listed("x", "a", "")); err != nil || fmt.Sprint(values) != "[a]" {
		t.Errorf("got %v, %v", values, err)
	}
	if _, err := untyped["name"](&metav1.ObjectMeta{}); err == nil {
		t.Error("another type was indexed")
	}
}

// typed wraps an informer as programs do that want its objects typed.
func typed[T Object](informer SharedIndexInformer) SharedIndexInformer {
	return NewTypedSharedIndexInformer[T](informer)
}

// upstreamShutDown is for scenarios that compare with client-go.
var upstreamShutDown = upstream.ShutDownEventHandler

// A typed handler is named by what it passes events on to.
func TestHandlerNameOfTyped(t *testing.T) {
	if got := handlerName(typedHandler[typedObject]{&typedLog{}}); !strings.HasSuffix(got, "/cache.typedLog") {
		t.Errorf("got %s", got)
	}
}
