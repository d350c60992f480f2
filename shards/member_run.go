package shards

import (
	"context"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/kube"
)

// Run takes part in the group until ctx ends. Then it waits for the work that has begun,
// for as long as Options.Margin, and gives its slots to the others. It may be called
// once.
func (m *Member) Run(ctx context.Context) error {
	if !m.started.CompareAndSwap(false, true) {
		return fmt.Errorf("shards: the member %s was started before; make another one", m.opts.Identity)
	}
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	leases, err := kube.Reflect[*coordinationv1.Lease](following, m.cfg,
		kube.Resource(coordinationv1.SchemeGroupVersion.WithResource("leases")),
		kube.Namespace(m.opts.Namespace), kube.LabelSelector(groupLabel+"="+m.opts.Group),
		kube.Name("leases of group "+m.opts.Group), kube.OnError(m.opts.OnError),
		kube.Configure(func(o *tarn.Options[*coordinationv1.Lease]) {
			o.Delay = func() time.Duration { return m.opts.renewEvery() / 2 } // others wait for what it sees
		}))
	if err != nil {
		stop()
		return err
	}
	defer func() {
		stop()
		<-leases.Done()
	}()
	if _, err := leases.Subscribe(func(tarn.Change[*coordinationv1.Lease]) { m.lookAgain() }, tarn.SubscribeOptions{}); err != nil {
		return err
	}
	m.group.leases, m.group.began = leases, m.opts.now()
	synced := leases.Synced()
	for ctx.Err() == nil {
		// Before the step, so that nothing is missed that happens during it.
		_, taken := m.sharding.AllTaken()
		timer := time.NewTimer(m.step(ctx, synced == nil))
		select {
		case <-m.wake:
		case <-taken:
		case <-synced:
			synced = nil
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	m.end(ctx)
	return context.Cause(ctx)
}

// step does what is due, and returns how long nothing else will be. synced says that the
// Leases of the group are known.
func (m *Member) step(ctx context.Context, synced bool) time.Duration {
	if synced && m.trusts() {
		m.observe(ctx)
	}
	if synced && m.trusts() && m.group.joined {
		m.own()
	}
	m.renew(ctx)
	if synced && m.trusts() {
		m.fence(ctx)
	}
	if synced && m.trusts() && m.group.joined {
		m.hold()
		m.advance(ctx)
		m.own()
		m.hold()
	}
	return m.pause()
}

// hold has the copies read what the member owns, what it is to own, and what it still works
// on. It comes after own: no work begins on objects that the copies are about to drop.
func (m *Member) hold() {
	g := &m.group
	for i := range slotCount {
		g.wanted[i] = m.mine(i) || g.table[i].Next == g.identity || m.work.busy(i)
		g.ready[i] = g.ready[i] && g.wanted[i]
	}
	_ = m.sharding.Set(setOf(m.opts.Key, func(i int) bool { return g.wanted[i] })) // its key is the member's
	if taken, _ := m.sharding.AllTaken(); taken {
		g.ready = g.wanted
	}
}

// mine reports whether the member owns a slot.
func (m *Member) mine(i int) bool {
	return m.group.table[i].Owner == m.group.identity || m.toRestore(i)
}

// toRestore reports whether the member owns a slot by a table that was replaced, and has to
// write that into the new one. A slot that it was about to hand over it does not claim: the
// other member may have it already.
func (m *Member) toRestore(i int) bool {
	return m.group.replaced() && m.group.table[i].Owner == "" && m.work.keeps(i)
}

// own lets work begin on the slots that the member owns, once its copies have them. It
// takes no slot before that, and is given none, unless somebody edits the table.
func (m *Member) own() {
	g := &m.group
	var mine [slotCount]bool
	for i := range mine {
		mine[i] = m.mine(i) && g.ready[i]
	}
	gained, lost := m.work.set(func(i int) bool { return mine[i] }, func(i int) bool { return g.table[i].Next == "" })
	others := len(g.staying(m.opts.now())) > 0
	m.note(func(h *Health) {
		h.Gained, h.Lost = h.Gained+int64(len(gained)), h.Lost+int64(lost)
		h.Members = len(g.members(m.opts.now()))
	})
	if tell := slices.Concat(gained, m.work.again()); len(tell) > 0 {
		m.opts.OnGain(setOf(m.opts.Key, func(i int) bool { return slices.Contains(tell, i) }))
	}
	if m.leaving.Load() && (!others || !g.owns()) {
		m.leftOnce.Do(func() { close(m.left) })
	}
}

// end lets the others have what the member owns. If work does not end in time, they wait
// until the Lease expires.
func (m *Member) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.opts.Margin)
	defer cancel()
	for i := range slotCount {
		m.work.release(i)
	}
	for m.work.working() > 0 {
		select {
		case <-m.wake:
		case <-ctx.Done():
			m.failed(context.WithoutCancel(ctx), "leaving", fmt.Errorf("%d pieces of work have not ended; others take over when the Lease expires", m.work.working()))
			return
		}
	}
	m.work.renewed(time.Time{})
	if m.group.joined {
		m.vacate(ctx)
	}
}
