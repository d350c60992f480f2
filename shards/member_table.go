package shards

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// advance makes the changes of the table that are the member's to make, and writes them in
// one step. If somebody else was faster, it does so again when their change is seen.
//
//   - The first of the members balances: it says who is to own what next. Any other one
//     could; it only avoids conflicts.
//   - The next owner of a slot says that it is ready once its copies have the objects. A
//     slot without owner it takes then.
//   - The owner hands a slot over when the next one is ready and its own work has ended.
//   - If the Lease of the group was deleted, any member writes a new one, which has only its
//     own slots, because others may have handed theirs over since. Each adds its own.
func (m *Member) advance(ctx context.Context) {
	g, now := &m.group, m.opts.now()
	if !now.Before(m.work.until()) {
		return // others may take the member for dead
	}
	next := g.table
	if g.tableLease == nil {
		next = m.ownTable()
	}
	known, agreed := g.tableLease != nil && g.tableUID == g.tableLease.UID, g.agreed(now)
	members := g.staying(now)
	if !m.leaving.Load() {
		members = append(members, g.identity)
		slices.Sort(members)
	}
	if len(members) > 0 && members[0] == g.identity || len(members) == 0 {
		next = next.balance(members, func(id string) bool { return id != g.identity && g.seen[id].dead(now) })
	}
	for i := range next {
		s, before := &next[i], g.table[i]
		toMe := s.Next == g.identity && before.Next == g.identity && known && g.ready[i]
		switch {
		case m.toRestore(i):
			s.Owner = g.identity
		case toMe && s.Owner == "" && agreed:
			*s = slot{Owner: g.identity}
		case toMe && s.Owner != "":
			s.Ready = true
		case s.Owner == g.identity && s.Ready && slices.Contains(members, s.Next) && m.work.release(i):
			*s = slot{Owner: s.Next}
		}
	}
	if next != g.table || g.tableLease == nil {
		m.writeTable(ctx, next)
	}
}

// ownTable is a table with nothing but the slots that the member owns. One that it was about
// to hand over is not among them: the other member may have it already.
func (m *Member) ownTable() (own table) {
	for i, s := range m.group.table {
		if s.Owner == m.group.identity && m.work.keeps(i) {
			own[i] = slot{Owner: s.Owner}
		}
	}
	return own
}

// writeTable writes a table in place of the one known.
func (m *Member) writeTable(ctx context.Context, t table) {
	g := &m.group
	raw, err := json.Marshal(t)
	if err != nil {
		m.failed(ctx, "writing the table", err)
		return
	}
	within, cancel := context.WithTimeout(ctx, m.opts.renewEvery())
	defer cancel()
	var written *coordinationv1.Lease
	if g.tableLease == nil {
		written, err = m.leases.Create(within, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Name: m.opts.Group, Namespace: m.opts.Namespace,
			Labels: map[string]string{groupLabel: m.opts.Group}, Annotations: map[string]string{tableAnnotation: string(raw)},
		}}, metav1.CreateOptions{})
	} else {
		changed := g.tableLease.DeepCopy()
		metav1.SetMetaDataAnnotation(&changed.ObjectMeta, tableAnnotation, string(raw))
		written, err = m.leases.Update(within, changed, metav1.UpdateOptions{})
	}
	switch {
	case err == nil:
		g.take(t, written)
		m.lookAgain()
	case apierrors.IsConflict(err):
		if g.conflicts++; g.conflicts > 1 { // what made them should have been seen
			m.readTable(ctx)
		}
	case apierrors.IsAlreadyExists(err):
		m.readTable(ctx)
	case apierrors.IsNotFound(err):
		g.tableGone, g.tableLease = g.tableLease, nil
		m.lookAgain()
	default:
		m.failed(ctx, "writing the table", err)
	}
}

// readTable looks at the Lease of the group's name on the server, when the copy does not have
// it or writes to it are refused. Another member may just have written it. If somebody removed
// its label, it gets that again.
func (m *Member) readTable(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, m.opts.renewEvery())
	defer cancel()
	lease, err := m.leases.Get(within, m.opts.Group, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		m.failed(ctx, "reading the table", err)
	case m.group.tableLease != nil && older(lease, m.group.tableLease):
		m.wentBack(ctx)
	case lease.Annotations[tableAnnotation] == "":
		m.noTable(ctx, lease, fmt.Errorf("the Lease %s/%s is not one of this group; remove it, or set Options.Group to another name", m.opts.Namespace, m.opts.Group))
	case lease.Labels[groupLabel] != m.opts.Group:
		metav1.SetMetaDataLabel(&lease.ObjectMeta, groupLabel, m.opts.Group)
		if _, err := m.leases.Update(within, lease, metav1.UpdateOptions{}); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			m.failed(ctx, "writing the label of the table", err)
		}
	}
}

// vacate lets the others have the slots of a member that ends, and removes its Lease.
func (m *Member) vacate(ctx context.Context) {
	g := &m.group
	for range 10 {
		lease, err := m.leases.Get(ctx, m.opts.Group, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			break // there is no table that has its slots
		}
		if err != nil {
			m.failed(ctx, "leaving", err)
			return
		}
		g.tableLease = nil
		m.observeTable(ctx, lease)
		next := g.table
		for i := range next {
			s := &next[i]
			if s.Next == g.identity {
				s.Next, s.Ready = "", false
			}
			if s.Owner == g.identity && s.Ready {
				*s = slot{Owner: s.Next}
			} else if s.Owner == g.identity {
				s.Owner = ""
			}
		}
		if next != g.table {
			m.writeTable(ctx, next)
		}
		if next == g.table {
			break
		}
	}
	err := m.leases.Delete(ctx, m.leaseName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &g.lease.UID}})
	if err != nil && !apierrors.IsNotFound(err) {
		m.failed(ctx, "leaving", err)
	}
}
