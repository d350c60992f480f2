package ctrlcache_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tarnproject/tarn/ctrlcache"
)

// honoured names every option and the test that shows that it is obeyed. A field
// that controller-runtime adds is not here: see to it, then add it.
var honoured = map[reflect.Type]map[string]string{
	reflect.TypeFor[cache.Options](): {
		"HTTPClient":                   "TestHTTPClientIsUsed",
		"Scheme":                       "TestOptions/scheme",
		"Mapper":                       "every test; without one TestManager finds its own",
		"SyncPeriod":                   "TestSyncPeriods",
		"ReaderFailOnMissingInformer":  "TestReading/only_known_informers",
		"DefaultNamespaces":            "TestOptions/namespaces",
		"DefaultLabelSelector":         "TestOptions/label_selector",
		"DefaultFieldSelector":         "TestOptions/by_object",
		"DefaultTransform":             "TestOptions/transform",
		"DefaultWatchErrorHandler":     "TestWatchErrorsReachTheHandler",
		"DefaultUnsafeDisableDeepCopy": "TestReading/without_copies",
		"DefaultEnableWatchBookmarks":  "TestOptions/no_bookmarks",
		"ByObject":                     "TestOptions/by_object",
		"NewInformer":                  "every scenario, by client-go's informers",
	},
	reflect.TypeFor[cache.ByObject](): {
		"Namespaces":            "TestOptions/by_object_and_namespace",
		"Label":                 "TestOptions/by_object",
		"Field":                 "TestReading/selectors_of_the_cache",
		"Transform":             "TestOptions/by_object",
		"UnsafeDisableDeepCopy": "TestReading/without_copies",
		"EnableWatchBookmarks":  "TestOptions/by_object",
		"SyncPeriod":            "TestSyncPeriods",
	},
	reflect.TypeFor[cache.Config](): {
		"LabelSelector":         "TestOptions/namespaces_with_settings",
		"FieldSelector":         "TestOptions/all_namespaces_but_some",
		"Transform":             "TestOptions/namespaces_with_settings",
		"UnsafeDisableDeepCopy": "TestCopiesByNamespace",
		"EnableWatchBookmarks":  "TestOptions/namespaces_with_settings",
		"SyncPeriod":            "TestSyncPeriods",
	},
	reflect.TypeFor[client.GetOptions](): {
		"Raw":                              "is for the API server: ignored, as there",
		"UnsafeDisableDeepCopy":            "TestReading/without_copies_for_one_read",
		"DisableReadYourWritesConsistency": "TestReadYourWritesGivesUp",
	},
	reflect.TypeFor[client.ListOptions](): {
		"LabelSelector":                    "TestReading/labels",
		"FieldSelector":                    "TestFieldSelectors",
		"Namespace":                        "TestReading/list_in_every_form",
		"Limit":                            "TestReading/limit_and_continue",
		"Continue":                         "TestReading/limit_and_continue",
		"UnsafeDisableDeepCopy":            "TestReading/without_copies_for_one_read",
		"DisableReadYourWritesConsistency": "TestReadYourWrites",
		"Raw":                              "is for the API server: ignored, as there",
	},
	reflect.TypeFor[cache.InformerGetOptions](): {
		"BlockUntilSynced": "TestInformers/not_waiting",
	},
}

func TestEveryOptionIsHonoured(t *testing.T) {
	for of, known := range honoured {
		var fields []string
		for i := range of.NumField() {
			fields = append(fields, of.Field(i).Name)
			if _, ok := known[of.Field(i).Name]; !ok {
				t.Errorf("%v.%s is new: this package does not honour it yet", of, of.Field(i).Name)
			}
		}
		for name := range known {
			if !slices.Contains(fields, name) {
				t.Errorf("%v.%s is no more", of, name)
			}
		}
	}
	config := reflect.TypeFor[cache.Config]()
	for i := range config.NumField() {
		switch config.Field(i).Type.Kind() {
		case reflect.Interface, reflect.Func, reflect.Pointer, reflect.Map, reflect.Slice:
		default:
			t.Errorf("cache.Config.%s cannot be nil: settings can no longer be layered by what is nil", config.Field(i).Name)
		}
	}
}

// TestSyncPeriods asks the informers for the period that they were made with.
func TestSyncPeriods(t *testing.T) {
	periods := map[string][]time.Duration{}
	opts := cache.Options{
		Mapper:            newMapper(),
		SyncPeriod:        ptr.To(time.Hour),
		DefaultNamespaces: map[string]cache.Config{"north": {SyncPeriod: ptr.To(3 * time.Hour)}, "south": {}},
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Node{}:      {SyncPeriod: ptr.To(2 * time.Hour)},
			&corev1.ConfigMap{}: {Namespaces: map[string]cache.Config{}},
		},
		NewInformer: func(lw toolscache.ListerWatcher, o runtime.Object, period time.Duration, i toolscache.Indexers) toolscache.SharedIndexInformer {
			name := reflect.TypeOf(o).Elem().Name()
			periods[name] = append(periods[name], period)
			return ctrlcache.NewInformer(lw, o, period, i)
		},
	}
	make := func(opts cache.Options, objects ...client.Object) {
		c, err := ctrlcache.NewCache(newAPIServer(t).config(), opts)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			if _, err := c.GetInformer(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
	}
	make(opts, &corev1.Node{}, &corev1.Pod{}, &corev1.ConfigMap{})
	make(cache.Options{Mapper: opts.Mapper, NewInformer: opts.NewInformer}, emptyLake())
	for name, want := range map[string][]time.Duration{
		"Node": {2 * time.Hour}, "Pod": {3 * time.Hour, time.Hour}, "ConfigMap": {time.Hour}, "Unstructured": {10 * time.Hour},
	} {
		for i, w := range want {
			if got := periods[name][i]; got < w*9/10 || got > w*11/10 {
				t.Errorf("%s: resync every %v, wanted about %v", name, got, w)
			}
		}
	}
}

func TestCopiesByNamespace(t *testing.T) {
	x := running(t, cache.Options{DefaultNamespaces: map[string]cache.Config{
		"north": {UnsafeDisableDeepCopy: ptr.To(true)}, "south": {},
	}})
	for namespace, want := range map[string]bool{"north": true, "south": false} {
		var one, two corev1.Pod
		key := client.ObjectKey{Namespace: namespace, Name: "a"}
		if err := x.cache.Get(x.ctx, key, &one); err != nil {
			t.Fatal(err)
		}
		if err := x.cache.Get(x.ctx, key, &two); err != nil {
			t.Fatal(err)
		}
		if same := &one.Spec.Containers[0] == &two.Spec.Containers[0]; same != want {
			t.Errorf("%s: reads share their content: %t, wanted %t", namespace, same, want)
		}
	}
}

// TestTransformsMayWrite changes, in each object, a part that all have in common.
func TestTransformsMayWrite(t *testing.T) {
	server := newAPIServer(t)
	for i := range 50 {
		server.put("pods", pod("north", fmt.Sprint("p", i), "n1", "Running", "deep"))
	}
	x := runningOn(t, server, cache.Options{DefaultTransform: func(in any) (any, error) {
		p := in.(*corev1.Pod)
		p.Spec.Containers[0].Image = p.Name
		return p, nil
	}})
	var pods corev1.PodList
	if err := x.cache.List(x.ctx, &pods); err != nil {
		t.Fatal(err)
	}
	for _, p := range pods.Items {
		if p.Spec.Containers[0].Image != p.Name {
			t.Errorf("%s has what was written for %s", p.Name, p.Spec.Containers[0].Image)
		}
	}
}
