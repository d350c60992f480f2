package shards

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tarnproject/tarn"
)

// renew renews the Lease of the member if that is due, or joins the group.
func (m *Member) renew(ctx context.Context) {
	g, began, leaving := &m.group, m.opts.now(), m.leaving.Load()
	tableUID := m.announcedTableUID()
	if began.Before(g.due) && (!g.joined || g.announced == leaving && g.tableUID == tableUID) {
		return
	}
	within, cancel := context.WithTimeout(ctx, m.opts.renewEvery())
	defer cancel()
	lease, err := m.writeLease(within, m.leaseAt(began, leaving, tableUID))
	switch {
	case apierrors.IsNotFound(err) && g.joined:
		m.fenced(ctx)
	case errors.Is(err, errWentBack):
		m.wentBack(ctx)
	case err != nil:
		g.due = m.opts.now().Add(m.opts.renewEvery() / 4)
		m.failed(ctx, "renewing the Lease", err)
	default:
		if tarn.Version(lease.ResourceVersion).OlderThan(g.newest) {
			m.wentBack(ctx)
		}
		g.newest = tarn.Version(lease.ResourceVersion)
		g.lease, g.joined, g.announced, g.tableUID, g.due = lease, true, leaving, tableUID, began.Add(m.opts.renewEvery())
		m.work.renewed(began.Add(m.opts.Duration - m.opts.Margin))
		m.note(func(h *Health) { h.Identity, h.Err = g.identity, g.tableErr })
	}
}

// announcedTableUID is the uid of the table that the member's slots are from. When the table was
// replaced, it stays the old one until the member's slots are in the new one, and no work is
// left on those that are not.
func (m *Member) announcedTableUID() types.UID {
	g := &m.group
	if !g.joined || g.tableLease == nil {
		return g.tableUID
	}
	if g.replaced() {
		if m.work.stray() {
			return g.tableUID
		}
		for i := range slotCount {
			if m.toRestore(i) {
				return g.tableUID
			}
		}
	}
	return g.tableLease.UID
}

// writeLease creates or renews the Lease. Nobody else writes to it, so that after a
// conflict, when an answer was lost, it is the member's still.
func (m *Member) writeLease(ctx context.Context, renewed *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	g := &m.group
	if !g.joined {
		lease, err := m.leases.Create(ctx, renewed, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			// Others count from when they first saw it, so it has to be renewed.
			return m.writeAnyway(ctx, renewed)
		}
		return lease, err
	}
	renewed.ResourceVersion, renewed.UID = g.lease.ResourceVersion, g.lease.UID
	lease, err := m.leases.Update(ctx, renewed, metav1.UpdateOptions{})
	if !apierrors.IsConflict(err) {
		return lease, err
	}
	return m.writeAnyway(ctx, renewed)
}

// writeAnyway renews the Lease in whatever version it is. One with another uid is not the
// member's, even if somebody made it from a copy of that: others may have taken the member
// for dead in between.
func (m *Member) writeAnyway(ctx context.Context, renewed *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	current, err := m.leases.Get(ctx, m.leaseName(), metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	switch g := &m.group; {
	case g.joined && current.UID != g.lease.UID:
		return nil, apierrors.NewNotFound(coordinationv1.Resource("leases"), m.leaseName())
	case g.joined && older(current, g.lease):
		return nil, errWentBack
	}
	renewed.ResourceVersion = current.ResourceVersion
	return m.leases.Update(ctx, renewed, metav1.UpdateOptions{})
}

func (m *Member) leaseName() string { return m.opts.Group + "-" + m.group.identity }

func (m *Member) leaseAt(at time.Time, leaving bool, tableUID types.UID) *coordinationv1.Lease {
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: m.leaseName(), Namespace: m.opts.Namespace, Labels: map[string]string{groupLabel: m.opts.Group}},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity:       ptr.To(m.group.identity),
			LeaseDurationSeconds: ptr.To(int32(m.opts.Duration / time.Second)),
			RenewTime:            ptr.To(metav1.NewMicroTime(at)),
		},
	}
	if leaving {
		metav1.SetMetaDataAnnotation(&lease.ObjectMeta, leavingAnnotation, "true")
	}
	if tableUID != "" {
		metav1.SetMetaDataAnnotation(&lease.ObjectMeta, tableUIDAnnotation, string(tableUID))
	}
	return lease
}

// fenced is called when the Lease is gone: others took the member for dead, or somebody
// removed it. The member begins no more work, and joins as somebody else. Work that it began
// may go on, so it waits for its former self as for any other member whose Lease is gone.
func (m *Member) fenced(ctx context.Context) {
	g := &m.group
	renewed := m.work.until().Add(m.opts.Margin - m.opts.Duration)
	g.seen[g.identity] = seenLease{uid: g.lease.UID, at: renewed, duration: m.opts.Duration, tableUID: g.tableUID, removed: true}
	m.work.renewed(time.Time{})
	m.work.set(func(int) bool { return false }, func(int) bool { return false })
	m.note(func(h *Health) { h.Fenced++ })
	m.failed(ctx, "renewing the Lease", fmt.Errorf("it is gone: it was not renewed within %v, or somebody removed it; the member joins again", m.opts.Duration))
	g.joined, g.identity, g.tableUID, g.due = false, newIdentity(m.opts.Identity), "", m.opts.now()
}

// older reports whether a Lease on the server is of an earlier version than one known before.
func older(now, before *coordinationv1.Lease) bool {
	return now.UID == before.UID && tarn.Version(now.ResourceVersion).OlderThan(tarn.Version(before.ResourceVersion))
}

var errWentBack = errors.New("the server went back to an earlier state, as a cluster that is restored; the member begins anew")

// wentBack is called when the server is in a state from before what the member knows: the
// cluster was restored from a backup. The table is again what it was then, so that others may
// own what the member owned since. It begins anew, and waits for those in the table as if it
// had just started.
func (m *Member) wentBack(ctx context.Context) {
	g := &m.group
	if g.joined {
		m.fenced(ctx)
	}
	m.failed(ctx, "reading the Leases", errWentBack)
	g.table, g.tableLease, g.tableGone, g.tableSeen = table{}, nil, nil, ""
	g.began, g.untrusted, g.conflicts = m.opts.now(), true, 0
	g.leases.Recheck("rewound")
}

// trusts reports whether the copy of the Leases is of the server's present state.
func (m *Member) trusts() bool {
	g := &m.group
	if g.untrusted && g.joined {
		lease, ok := g.leases.Get(tarn.Key(m.opts.Namespace + "/" + m.leaseName()))
		g.untrusted = !ok || lease.UID != g.lease.UID
	}
	return !g.untrusted
}

// fence removes the Leases of members that are silent, or finds out that they are gone.
// That the copy does not have a Lease does not suffice: its label may be missing.
func (m *Member) fence(ctx context.Context) {
	g := &m.group
	for id, s := range g.seen {
		if now := m.opts.now(); s.removed || !s.silent(now) || now.Before(g.fenceAfter) {
			continue
		}
		s, err := m.remove(ctx, id, s)
		if errors.Is(err, errWentBack) {
			m.wentBack(ctx)
			return
		}
		if err != nil {
			m.failed(ctx, "removing the Lease of "+id+", which is silent,", err)
			g.fenceAfter = m.opts.now().Add(m.opts.renewEvery() / 4)
			return
		}
		g.seen[id] = s
	}
}

// remove deletes a Lease in exactly the version that was seen. If that works, its member
// cannot renew it. If not, because it has another version or was never seen, its time
// begins again.
func (m *Member) remove(ctx context.Context, id string, s seenLease) (seenLease, error) {
	within, cancel := context.WithTimeout(ctx, m.opts.renewEvery())
	defer cancel()
	name, err := m.opts.Group+"-"+id, error(nil)
	if s.version != "" {
		err = m.leases.Delete(within, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &s.uid, ResourceVersion: &s.version}})
	}
	if s.version == "" || apierrors.IsConflict(err) {
		var lease *coordinationv1.Lease
		if lease, err = m.leases.Get(within, name, metav1.GetOptions{}); err == nil {
			if lease.UID == s.uid && tarn.Version(lease.ResourceVersion).OlderThan(tarn.Version(s.version)) {
				return s, errWentBack
			}
			return m.see(lease, s), nil
		}
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return s, err
	}
	s.present, s.removed = false, true
	return s, nil
}

// pause is the time until something is due.
func (m *Member) pause() time.Duration {
	g, now := &m.group, m.opts.now()
	next := g.due
	for _, s := range g.seen {
		expires := s.at.Add(s.duration)
		if !s.removed && expires.Before(g.fenceAfter) {
			expires = g.fenceAfter
		}
		if (!s.removed || expires.After(now)) && expires.Before(next) {
			next = expires
		}
	}
	return max(next.Sub(now), 10*time.Millisecond)
}
