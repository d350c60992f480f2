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
	"github.com/tarnproject/tarn/cache"
	"github.com/tarnproject/tarn/informers"
	"github.com/tarnproject/tarn/sqlite"
	"github.com/tarnproject/tarn/sqlite/ondisk"
)

// The informers of a factory survive a restart: the second process lists nothing,
// and its handler gets the previous content and then the changes since.
func ExampleKeeper() {
	server := apiserver.New(apiserver.Options{AnyNamespace: true}) // any cluster will do
	defer server.Close()
	put := func(names ...string) {
		for _, name := range names {
			if err := server.Put(&corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}); err != nil {
				log.Fatal(err)
			}
		}
	}
	parent, err := os.MkdirTemp("", "tarn")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(parent)

	process := func(name string) {
		db, err := sqlite.Open(filepath.Join(parent, "replica"), sqlite.Options{})
		if err != nil {
			log.Fatal(err)
		}
		factory, err := informers.NewSharedInformerFactoryForConfig(server.Config(), 0, informers.WithDisk(ondisk.Keeper(db)))
		if err != nil {
			log.Fatal(err)
		}
		informer := factory.Core().V1().ConfigMaps().Informer()
		ctx, cancel := context.WithCancel(context.Background())
		factory.StartWithContext(ctx)
		factory.WaitForCacheSyncWithContext(ctx)
		replica, _ := cache.ReplicaOf(informer)
		fmt.Printf("%s: %d objects, whole reads: %v\n", name, len(informer.GetStore().List()), replica.Health().Lists)
		cancel()
		factory.Shutdown()
		if err := db.Close(); err != nil {
			log.Fatal(err)
		}
	}
	put("depths")
	process("first")
	put("heights")
	process("second")
	// Output:
	// first: 1 objects, whole reads: map[start:1]
	// second: 2 objects, whole reads: map[]
}
