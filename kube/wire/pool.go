package wire

import "github.com/tarnproject/tarn/kube/wire/internal/pool"

// Pool holds the parts that objects share.
type Pool = pool.Pool

// NewPool returns an empty pool.
func NewPool() *Pool { return pool.New() }

// Options shape a [Decoder].
type Options = pool.Options

// Stats is what a pool holds and what it was good for.
type Stats = pool.Stats
