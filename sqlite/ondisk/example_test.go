package ondisk_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/sqlite"
	"github.com/tarnproject/tarn/sqlite/ondisk"
)

// A replica of pods that is kept on disk can be asked in SQL, and the next process
// begins with it.
func ExampleIn() {
	server := apiserver.New(apiserver.Options{})
	defer server.Close()
	if err := server.Put(&corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-0"},
		Spec:       corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "c", Image: "nginx:1.29"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}); err != nil {
		log.Fatal(err)
	}
	parent, err := os.MkdirTemp("", "tarn")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(parent)

	db, err := sqlite.Open(filepath.Join(parent, "replica"), sqlite.Options{})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	pods, err := kube.Reflect[*corev1.Pod](ctx, server.Config(), ondisk.In[*corev1.Pod](db))
	if err != nil {
		log.Fatal(err)
	}
	if err := pods.WaitSynced(ctx); err != nil {
		log.Fatal(err)
	}
	if err := db.Flush(); err != nil { // or wait a second
		log.Fatal(err)
	}
	result, err := db.Query(ctx, `
		SELECT namespace, pods.name, phase, c.value->>'image' AS image
		FROM pods, json_each(object, '$.spec.containers') AS c
		WHERE node = ?`, sqlite.Limits{}, "node-1")
	if err != nil {
		log.Fatal(err)
	}
	for _, row := range result.Rows {
		fmt.Println(row...)
	}
	cancel()
	<-pods.Done()
	fmt.Println(db.Close())
	// Output:
	// default web-0 Running nginx:1.29
	// <nil>
}
