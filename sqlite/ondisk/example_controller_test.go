package ondisk_test

import (
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/tarnproject/tarn/ctrlcache"
	"github.com/tarnproject/tarn/sqlite"
	"github.com/tarnproject/tarn/sqlite/ondisk"
)

// An operator that keeps its cache on disk begins, after a restart, with what it
// knew, and lists nothing.
func ExampleKeeper_controllerRuntime() {
	db, err := sqlite.Open("/var/lib/operator/replica", sqlite.Options{})
	if err != nil {
		panic(err)
	}
	defer db.Close()
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		NewCache: ctrlcache.WithDisk(ondisk.Keeper(db)),
	})
	if err != nil {
		panic(err)
	}
	_ = mgr.Start(ctrl.SetupSignalHandler())
}
