package wire

import "sync"

var shared = sync.OnceValue(NewPool)

// Shared is the pool of the process. Informers of package cache share through it,
// so that two of them that hold the same objects, or objects with the same parts,
// hold these once.
func Shared() *Pool { return shared() }
