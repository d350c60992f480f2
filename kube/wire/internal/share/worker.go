package share

import (
	"reflect"

	"github.com/tarnproject/tarn/kube/wire/internal/pool"
	"github.com/tarnproject/tarn/kube/wire/internal/recent"
)

// worker shares one object at a time. It keeps its statistics and its recent
// parts for the next one.
type worker struct {
	sharer *Sharer
	root   *plan
	recent recent.Table[recentPart]
	// sites holds the statistics of each field of each plan, trees those of the
	// keys of JSON trees.
	sites [][]site
	trees *[2 * treeSites]site
	// nodes are the hashes of the object being shared, each before those below
	// it.
	nodes []node
	// entries are those of the maps of JSON trees, whose order changes with
	// each iteration.
	entries []entry
	// texts are strings that belong to this object only, of the blocks being
	// built.
	texts   []ownText
	pairs   [][2]string
	scalars ownScalars
	// inPlace says that the object, or the part of it that is being built, is nobody
	// else's: it may be written to. cloned says that it is a part that was cloned after it
	// was hashed.
	inPlace, cloned bool
	// offered counts the parts being built that the pool will be offered.
	offered int
	comparer
	// opaque is set when something is read that cannot be shared.
	opaque bool
	// left is how much of this object may still be read.
	left    int
	copiers map[*step]*copier
	// epoch is the number of the object, time when it came.
	epoch uint32
	time  pool.Seconds
}

const (
	// maxDepth and maxReads bound what is read of one object. API objects have
	// no cycles; a value that has one must not hang, and is not shared.
	maxDepth = 200
	maxReads = 1 << 20

	unhashed = -1
)

func (w *worker) begin() {
	w.nodes, w.left, w.compares, w.opaque = w.nodes[:0], maxReads, maxReads, false
	w.mapped, w.cloned = false, false
	w.texts, w.offered = w.texts[:0], 0
	w.scalars.forget()
	w.epoch++
	w.time = pool.Now()
}

// plan returns the plan for an object, which is most often that of the last one.
func (w *worker) plan(t reflect.Type) *plan {
	if w.root == nil || w.root.t != t {
		w.root = planFor(t, !w.sharer.opts.SharedMetadata)
	}
	return w.root
}

// known returns the sites of a plan's steps.
func (w *worker) known(p *plan) []site {
	if p.id >= len(w.sites) {
		w.sites = append(w.sites, make([][]site, p.id+1-len(w.sites))...)
	}
	if w.sites[p.id] == nil {
		w.sites[p.id] = make([]site, len(p.steps))
	}
	return w.sites[p.id]
}
