package wire

import (
	"sync"

	"github.com/tarnproject/tarn/kube/wire/internal/pool"
)

var shared = sync.OnceValue(pool.New)

// Shared is the pool of the process. Informers of package cache share through it,
// so that two of them that hold the same objects, or objects with the same parts,
// hold these once.
func Shared() *pool.Pool { return shared() }
