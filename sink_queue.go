package tarn

import (
	"cmp"
	"iter"
	"slices"
	"time"
)

// sinkQueue holds what a sink has not committed.
//
// Only the last state of each key is kept, unless the sink wants every state and they
// fit into its bound. So a sink that fails for an hour costs one entry per object.
//
// Why it does not fold as a backlog does: a backlog drops an Add and the Delete after
// it, because its subscriber saw neither. A commit that failed may have taken effect,
// so here the Delete must stay.
type sinkQueue[T any] struct {
	policy SinkPolicy[T]

	changes []Change[T]
	bytes   int64
	// last has the index of each key, once states are folded.
	last map[Key]int
	// dropped says that folding dropped a state.
	dropped bool
	// again says that a commit of the same has failed.
	again bool
	// whole says that the changes are the whole content.
	whole bool
	// any says that there is something to commit, oldest since when. contact is the time
	// of the last contact with the source.
	any             bool
	oldest, contact time.Time
	// from and at are the positions before and after what may be folded.
	from, at Positions
	gaps     []Gap
}

// add appends changes that lead to a position.
func (q *sinkQueue[T]) add(now, contact time.Time, changes []Change[T], at Position) {
	for i := range changes {
		q.putHeard(changes[i], contact)
	}
	if !q.at.has(at.Section) && at != (Position{Section: at.Section}) {
		q.begin(at)
	}
	q.at.Move(at)
	q.note(now, contact)
}

// begin records the first state of a section. It is no gap, unless the section was removed
// while the sink was behind, and is there again.
func (q *sinkQueue[T]) begin(at Position) {
	for _, g := range between(&q.from, &Positions{only: at}, GapRead) {
		q.addGap(g)
	}
	q.from.Move(at)
}

// addGap appends a gap, or extends the last one: while an object is bad, every change
// has a gap. A gap whose end was not known yet gets it.
func (q *sinkQueue[T]) addGap(g Gap) {
	if i := slices.Index(q.gaps, Gap{Section: g.Section, From: g.From, Cause: g.Cause}); i >= 0 {
		q.gaps[i].To = g.To
		return
	}
	if n := len(q.gaps); n > 0 {
		last := &q.gaps[n-1]
		if last.Section == g.Section && last.Cause == g.Cause && last.To == g.From {
			last.To = g.To
			return
		}
	}
	q.gaps = append(q.gaps, g)
}

func (q *sinkQueue[T]) note(now, contact time.Time) {
	q.contact = contact
	if !q.any {
		q.any, q.oldest = true, now
	}
}

// putHeard queues a change with the time when it was received, if the sink wants every state.
func (q *sinkQueue[T]) putHeard(c Change[T], heard time.Time) {
	if q.policy.EveryState {
		c.Heard = heard
	}
	q.put(c)
}

func (q *sinkQueue[T]) put(c Change[T]) {
	var none T
	c.Old = none // must not be kept alive
	if !q.policy.EveryState {
		if c.Type == Delete {
			c.Object = none
		}
		q.fold(c)
		return
	}
	q.bytes += int64(q.policy.SizeOf(c))
	if q.last != nil {
		q.fold(c)
		return
	}
	q.changes = append(q.changes, c)
	if q.bytes > q.policy.MaxBytes {
		q.foldAll()
	}
}

// foldAll keeps only the last state of each key.
func (q *sinkQueue[T]) foldAll() {
	changes := q.changes
	q.changes, q.last = nil, map[Key]int{}
	for _, c := range changes {
		q.fold(c)
	}
}

func (q *sinkQueue[T]) fold(c Change[T]) {
	if q.last == nil {
		q.last = map[Key]int{}
	}
	i, known := q.last[c.Key]
	if !known {
		q.last[c.Key] = len(q.changes)
		q.changes = append(q.changes, c)
		return
	}
	if q.policy.EveryState {
		q.bytes -= int64(q.policy.SizeOf(q.changes[i]))
		q.dropped = true
	}
	c.Rewound = c.Rewound || q.changes[i].Rewound
	q.changes[i] = c
}

// openGaps are the gaps of which nobody knows the end. A comparison finds the others again by the
// positions.
func (q *sinkQueue[T]) openGaps() []Gap {
	return slices.DeleteFunc(slices.Clone(q.gaps), func(g Gap) bool { return g.To != "" })
}

// follows continues after a batch that the sink may have or not: its gaps are repeated, and a
// section that it began may lack what came since.
func (q *sinkQueue[T]) follows(unanswered sinkQueue[T]) {
	for _, g := range unanswered.gaps {
		q.addGap(g)
	}
	for _, p := range unanswered.at.All() {
		if !q.from.has(p.Section) {
			q.from.Move(p)
		}
	}
}

// replaceAll makes the queue the whole content at these positions.
func (q *sinkQueue[T]) replaceAll(now, contact time.Time, content []Change[T], at Positions) {
	*q = sinkQueue[T]{policy: q.policy, whole: true, from: q.from, gaps: q.gaps}
	for _, c := range content {
		q.putHeard(c, contact)
	}
	q.jump(now, contact, at)
}

// jump records that the queue leads to these positions, past states that it does not have.
func (q *sinkQueue[T]) jump(now, contact time.Time, at Positions) {
	q.gaps = append(q.gaps, between(&q.from, &at, GapReconciled)...)
	q.from, q.at = at.Clone(), at.Clone()
	q.note(now, contact)
}

// take returns what waits and leaves the queue empty. A queue that is to be the whole
// content stays so until there is something to commit.
func (q *sinkQueue[T]) take() sinkQueue[T] {
	if !q.any {
		return sinkQueue[T]{}
	}
	taken := *q
	if taken.dropped {
		taken.gaps = append(taken.gaps, between(&taken.from, &taken.at, GapFolded)...)
		taken.gaps = append(taken.gaps, foldedAway(&taken.from, &taken.at)...)
		taken.dropped = false
	}
	*q = sinkQueue[T]{policy: q.policy, from: taken.at.Clone(), at: taken.at.Clone()}
	return taken
}

// queueSize is how much waits in a queue.
type queueSize struct {
	any     bool
	changes int
	bytes   int64
	oldest  time.Time
}

func (q *sinkQueue[T]) size() queueSize {
	return queueSize{q.any, len(q.changes), q.bytes, q.oldest}
}

// batch is what was taken, as the sink is given it.
func (q *sinkQueue[T]) batch() Batch[T] {
	return Batch[T]{Again: q.again, Whole: q.whole, Changes: q.changes, Positions: q.at.All(), Gaps: q.gaps, LastContact: q.contact}
}

// putBack adds a later queue to one whose commit failed.
func (q *sinkQueue[T]) putBack(later sinkQueue[T]) {
	if !later.any {
		return
	}
	if later.whole {
		later.from, later.oldest, later.gaps = q.from, q.oldest, append(q.gaps, later.gaps...)
		*q = later
		return
	}
	for _, c := range later.changes {
		q.put(c)
	}
	q.at, q.contact, q.gaps = later.at, later.contact, append(q.gaps, later.gaps...)
}

// between are the gaps between two sets of positions, one for each section that moved.
func between(from, to *Positions, cause GapCause) (gaps []Gap) {
	for before, p := range moves(from, to) {
		gap := Gap{Section: p.Section, From: before.Version, To: p.Version, Cause: cause}
		if cause != GapFolded && back(before, p) {
			gap.Cause = GapRewound
		}
		gaps = append(gaps, gap)
	}
	return gaps
}

// foldedAway are the gaps of the sections that were removed while states were folded. Nobody
// knows where such a gap ends.
func foldedAway(from, to *Positions) (gaps []Gap) {
	for _, p := range from.All() {
		if !to.has(p.Section) && p.Version != "" {
			gaps = append(gaps, Gap{Section: p.Section, From: p.Version, Cause: GapFolded})
		}
	}
	return gaps
}

// wentBack says whether the source has gone back between two sets of positions. Then
// equal versions of an object do not prove equal content.
func wentBack(from, to *Positions) bool {
	for before, p := range moves(from, to) {
		if back(before, p) {
			return true
		}
	}
	return false
}

func back(before, p Position) bool {
	return before.Epoch != p.Epoch || p.Version.OlderThan(before.Version)
}

// moves walks the positions of the sections that are in both sets and not at the same
// version and epoch.
func moves(from, to *Positions) iter.Seq2[Position, Position] {
	return func(yield func(Position, Position) bool) {
		before := from.All()
		for _, p := range to.All() {
			i, known := slices.BinarySearchFunc(before, p.Section, func(x Position, s string) int { return cmp.Compare(x.Section, s) })
			if known && (before[i].Version != p.Version || before[i].Epoch != p.Epoch) && !yield(before[i], p) {
				return
			}
		}
	}
}
