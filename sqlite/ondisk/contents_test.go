package ondisk

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/sqlite"
)

func TestSecretsAreNotWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := apiserver.New(apiserver.Options{})
		defer server.Close()
		must(t, server.Put(&corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s"}, Data: map[string][]byte{"password": []byte("hunter2")}}))
		for _, asked := range []bool{false, true} {
			dir := directory(t)
			db, err := sqlite.Open(dir, sqlite.Options{})
			must(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			var opts []Option
			if asked {
				opts = append(opts, WithSecrets())
			}
			secrets, err := kube.Reflect[*corev1.Secret](ctx, server.Config(), In[*corev1.Secret](db, opts...))
			must(t, err)
			must(t, secrets.WaitSynced(ctx))
			must(t, db.Flush())
			r, err := db.Query(ctx, "SELECT count(*) FROM sqlite_schema WHERE name='secrets'", sqlite.Limits{})
			must(t, err)
			if written := r.Rows[0][0] != int64(0); written != asked {
				t.Errorf("asked %v, written %v", asked, written)
			}
			if note := secrets.Health().Disk.Note; asked == strings.Contains(note, "unless asked") {
				t.Errorf("asked %v, and Health notes %q", asked, note)
			}
			cancel()
			<-secrets.Done()
			must(t, db.Close())
		}
	})
}

// Custom resources are kept as they are, numbers and all, with columns of their
// own.
func TestCustomResources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := apiserver.New(apiserver.Options{AnyNamespace: true})
		defer server.Close()
		must(t, server.Register(apiserver.Kind{Group: "stable.example.com", Version: "v1", Kind: "CronTab"}))
		crontab := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "stable.example.com/v1", "kind": "CronTab",
			"metadata": map[string]any{"namespace": "default", "name": "x"},
			"spec":     map[string]any{"cronSpec": "* * * * *", "replicas": int64(3), "ratio": 0.5, "tags": []any{"a", "b"}},
		}}
		must(t, server.Put(crontab))
		dir := directory(t)
		resource := schema.GroupVersionResource{Group: "stable.example.com", Version: "v1", Resource: "crontabs"}
		var before *unstructured.Unstructured
		for i := range 2 {
			db, err := sqlite.Open(dir, sqlite.Options{})
			must(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			columns := WithColumns(Column{Name: "spec", Type: "TEXT", Path: "spec.cronSpec"}, Column{Name: "replicas", Type: "INTEGER", Path: "spec.replicas", Index: true})
			r, err := kube.ReflectResource(ctx, server.Config(), resource, In[*unstructured.Unstructured](db, columns))
			must(t, err)
			must(t, r.WaitSynced(ctx))
			got, ok := r.Get("default/x")
			if !ok {
				t.Fatal("it is not there")
			}
			if i == 1 && !equalObjects(before, got) {
				t.Errorf("from disk comes\n%v, want\n%v", got, before)
			}
			before = got
			must(t, db.Flush())
			rows, err := db.Query(ctx, "SELECT spec, replicas, object->>'kind' FROM crontabs_stable_example_com WHERE replicas=3", sqlite.Limits{})
			must(t, err)
			if got := fmt.Sprint(rows.Rows); got != "[[* * * * * 3 CronTab]]" {
				t.Errorf("SQL says %s", got)
			}
			cancel()
			<-r.Done()
			must(t, db.Close())
		}
	})
}
