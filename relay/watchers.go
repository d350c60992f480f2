package relay

import (
	"io"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/selection"

	"github.com/tarnproject/tarn/apiserver"
)

// watchers are the open watches of a resource, by topic: an event wakes the watches of
// its topic, and no others. A kubelet watches the pods of its node; without topics, each
// of 5,000 would be woken for every pod of the others.
type watchers struct {
	by    map[topic]map[*place]struct{}
	count int
	// nodes, labels and shards count the topics of these sorts: nothing is read of an
	// object for a sort that nobody has.
	nodes, labels, shards int
}

// topic is what events that a watch can see have in common. A watch has the one of its
// selection that fewest events have: a name, a node, a label, a namespace, or nothing; or
// several, if it is that of a shard.
type topic struct {
	sort topicSort
	// text is the key of an object, a node's name, "name=value", a namespace, or the field
	// of a shard.
	text string
	// hashes are those of a shard.
	hashes hashes
}

type topicSort uint8

const (
	everything topicSort = iota
	ofNamespace
	ofLabel
	ofShard
	ofNode
	ofObject
)

const (
	nameField = "metadata.name"
	nodeField = "spec.nodeName"
)

func topicsOf(q apiserver.Selection) []topic {
	if q.Fields != nil {
		if name, ok := q.Fields.RequiresExactMatch(nameField); ok && q.Namespace != "" {
			return []topic{{sort: ofObject, text: q.Namespace + "/" + name}}
		}
		if node, ok := q.Fields.RequiresExactMatch(nodeField); ok {
			return []topic{{sort: ofNode, text: node}}
		}
	}
	if q.Shard != nil {
		return shardTopics(q.Shard)
	}
	if q.Labels != nil {
		requirements, _ := q.Labels.Requirements()
		for _, r := range requirements {
			values := r.ValuesUnsorted()
			if (r.Operator() == selection.Equals || r.Operator() == selection.DoubleEquals || r.Operator() == selection.In) && len(values) == 1 {
				return []topic{{sort: ofLabel, text: r.Key() + "=" + values[0]}}
			}
		}
	}
	if q.Namespace != "" {
		return []topic{{sort: ofNamespace, text: q.Namespace}}
	}
	return []topic{{}}
}

// place is one watch: where in the log it has to read on, and nothing else. It has no
// buffer.
type place struct {
	state   *state
	topics  []topic
	from    apiserver.Listing
	rewinds int
	after   int64
	// exact says that the watcher is to be notified of gaps, see [noGaps].
	exact bool
	// pending is the place of the first event that it has not read, none if there is
	// no event for it. Places before are no concern of the watch, so it may be quiet for
	// longer than the log reaches back.
	pending atomic.Int64
	wake    chan<- struct{}
}

const none = -1

func (w *watchers) add(p *place) {
	if w.by == nil {
		w.by = map[topic]map[*place]struct{}{}
	}
	for _, t := range p.topics {
		if w.by[t] == nil {
			w.by[t] = map[*place]struct{}{}
			w.kinds(t, 1)
		}
		w.by[t][p] = struct{}{}
	}
	w.count++
}

func (w *watchers) remove(p *place) {
	if _, ok := w.by[p.topics[0]][p]; !ok {
		return
	}
	w.count--
	for _, t := range p.topics {
		delete(w.by[t], p)
		if len(w.by[t]) == 0 {
			delete(w.by, t)
			w.kinds(t, -1)
		}
	}
}

func (w *watchers) kinds(t topic, n int) {
	switch t.sort {
	case ofNode:
		w.nodes += n
	case ofLabel:
		w.labels += n
	case ofShard:
		w.shards += n
	}
}

// notify wakes the watches that an event may concern.
func (w *watchers) notify(e *apiserver.Event, place int) {
	w.wake(topic{}, place)
	w.wake(topic{sort: ofObject, text: e.Object.Key()}, place)
	w.wake(topic{sort: ofNamespace, text: e.Object.Namespace()}, place)
	if w.shards > 0 {
		w.wakeShards(e.Object, place)
		if e.Old != nil && e.Old.UID() != e.Object.UID() {
			w.wakeShards(e.Old, place)
		}
	}
	for _, o := range []*apiserver.Object{e.Old, e.Object} {
		if o == nil {
			continue
		}
		if w.nodes > 0 {
			w.wake(topic{sort: ofNode, text: o.Get(nodeField)}, place)
		}
		if w.labels > 0 {
			for name, value := range o.Labels() {
				w.wake(topic{sort: ofLabel, text: name + "=" + value}, place)
			}
		}
	}
}

func (w *watchers) wake(t topic, place int) {
	for p := range w.by[t] {
		p.notify(place)
	}
}

func (w *watchers) wakeAll(place int) {
	for t := range w.by {
		w.wake(t, place)
	}
}

func (p *place) notify(place int) {
	p.pending.CompareAndSwap(none, int64(place))
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Objects returns the objects that the watch begins with. The watch does not hold
// them any longer.
func (p *place) Objects() apiserver.Listing {
	from := p.from
	p.from.Objects = nil
	return from
}

// Next returns the next events. A watch that is too far behind ends, and its client
// comes again; a watch from before a rewind gets the answer that its version is too old.
func (p *place) Next() ([]*apiserver.Event, int64, error) {
	events, version, from, err := p.read()
	if err != nil || from == none {
		return nil, version, err
	}
	if p.exact {
		for i, e := range events {
			if e.Gap != nil {
				return p.untilGap(events[:i], from, e)
			}
		}
	}
	return events, version, nil
}

var errTooFarBehind = io.EOF

// read returns the events from the pending place on, and that place.
func (p *place) read() (events []*apiserver.Event, version, from int64, err error) {
	s := p.state
	s.mu.RLock()
	defer s.mu.RUnlock()
	if p.rewinds != s.rewinds {
		return nil, 0, none, apiserver.TooOld(p.after, s.log.floor)
	}
	from = p.pending.Swap(none)
	if s.ended && (from == none || int(from) >= s.log.end()) {
		return nil, 0, none, io.EOF
	}
	if from == none {
		return nil, s.version, none, nil
	}
	events, ok := s.log.after(int(from))
	if !ok && s.journal != nil {
		s.mu.RUnlock()
		events, version, err = p.readOlder(int(from))
		s.mu.RLock()
		return events, version, from, err
	}
	if !ok {
		s.overruns.Add(1)
		return nil, 0, none, errTooFarBehind
	}
	return events, s.version, from, nil
}

// untilGap returns the events before a gap, and then that the version is too old.
func (p *place) untilGap(events []*apiserver.Event, from int64, gap *apiserver.Event) ([]*apiserver.Event, int64, error) {
	if len(events) == 0 {
		return nil, 0, apiserver.TooOld(gap.Gap.From, gap.Version)
	}
	p.pending.Store(from + int64(len(events)))
	return events, events[len(events)-1].Version, nil
}

// Close forgets the watch.
func (p *place) Close() {
	p.state.mu.Lock()
	defer p.state.mu.Unlock()
	p.state.watchers.remove(p)
}
