package shards

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tarnproject/tarn"
)

const (
	// groupLabel is on all Leases of a group, and has its name.
	groupLabel = "shards.tarn.dev/group"
	// tableAnnotation has the table, on the Lease that is called as the group.
	tableAnnotation = "shards.tarn.dev/table"
	// leavingAnnotation is on the Lease of a member that wants to hand everything over.
	leavingAnnotation = "shards.tarn.dev/leaving"
	// tableUIDAnnotation is on the Lease of a member, and has the uid of the group's Lease that
	// its slots are from. A member that never had a table has none.
	tableUIDAnnotation = "shards.tarn.dev/table-uid"
)

// groupView is what a member knows of its group. Times are those of its own clock: it
// measures how long it has seen no renewal, and compares no clock with another.
type groupView struct {
	leases *tarn.Replica[*coordinationv1.Lease]
	// began is when the member started, identity how it is called, and lease its own
	// Lease as it was last written. joined says that it has one, and due is when that has
	// to be renewed.
	began    time.Time
	identity string
	lease    *coordinationv1.Lease
	joined   bool
	due      time.Time
	// announced says that the Lease tells others that the member leaves.
	announced bool

	// table is the newest that is known, in tableLease, which is nil if there is none.
	table      table
	tableLease *coordinationv1.Lease
	// tableSeen is the uid of the group's Lease in the copy.
	tableSeen types.UID
	// tableGone is the group's Lease as it was last known before it was gone. The copy may
	// still have it.
	tableGone *coordinationv1.Lease
	// tableUID is the uid that the member's own Lease says its slots are from.
	tableUID types.UID
	// wanted has the slots that the copies are to have, and ready those that they have.
	wanted, ready [slotCount]bool
	// seen has the Leases of the other members, those that are gone included.
	seen map[string]seenLease
	// fenceAfter is when to try again to remove Leases, after a failure.
	fenceAfter time.Time
	// unreadable is the version of the Lease whose table could not be read, and tableErr
	// says so until there is a table.
	unreadable string
	tableErr   error
	// conflicts counts writes of the table that were refused since it was last read.
	conflicts int
	// newest is the version of the member's last write, of any of its Leases. untrusted says
	// that the server went back since: the copy may be from before that, until it has the
	// member's present Lease.
	newest    tarn.Version
	untrusted bool
}

// seenLease is the Lease of another member.
type seenLease struct {
	uid     types.UID
	version string
	// at is when it was first seen in this version.
	at time.Time
	// duration is what the Lease says, or that of the member that reads it, if that is longer:
	// somebody may have edited the Lease, and its member works for as long as it meant to.
	duration time.Duration
	leaving  bool
	// tableUID is the group's Lease that its slots are from; empty if it never had any.
	tableUID types.UID
	// present says that the copy has the Lease. It also loses one whose label or holder
	// somebody has edited, and which its member may renew. removed says that the server has it
	// no more.
	present, removed bool
}

// silent reports whether a member has not renewed its Lease for as long as it lasts.
func (s seenLease) silent(now time.Time) bool { return now.Sub(s.at) >= s.duration }

// dead reports whether a member cannot work any more: its Lease is gone, and it was not
// renewed for as long as it lasts, in case somebody removed it by hand.
func (s seenLease) dead(now time.Time) bool { return s.removed && s.silent(now) }

// observe takes over what the copy of the Leases has.
func (m *Member) observe(ctx context.Context) {
	g, now := &m.group, m.opts.now()
	present := map[string]bool{}
	tableSeen := types.UID("")
	for _, lease := range g.leases.All() {
		if lease.Name == m.opts.Group {
			if !g.outdated(lease) {
				tableSeen = lease.UID
				m.observeTable(ctx, lease)
			}
			continue
		}
		id := ptr.Deref(lease.Spec.HolderIdentity, "")
		if id == "" || lease.Name != m.opts.Group+"-"+id {
			continue // not one of a member, or somebody edited it: its member writes it again
		}
		if present[id] = true; id == g.identity {
			continue
		}
		s := g.seen[id]
		if s.uid != lease.UID || s.version != lease.ResourceVersion {
			s = m.see(lease, s)
		}
		s.present = !s.removed
		g.seen[id] = s
	}
	if tableSeen == "" && g.tableLease != nil && g.tableSeen == g.tableLease.UID {
		g.tableGone, g.tableLease = g.tableLease, nil
	}
	g.tableSeen = tableSeen
	for _, s := range g.table {
		for _, id := range []string{s.Owner, s.Next} {
			if _, ok := g.seen[id]; !ok && id != "" && id != g.identity {
				g.seen[id] = seenLease{at: g.began, duration: m.opts.Duration}
			}
		}
	}
	for id, s := range g.seen {
		s.present = s.present && present[id]
		g.seen[id] = s
		if s.removed && s.silent(now) && !present[id] && !g.table.names(id) {
			delete(g.seen, id)
		}
	}
}

// see returns what is to be known of a Lease in a version that was not seen before.
func (m *Member) see(lease *coordinationv1.Lease, before seenLease) seenLease {
	s := seenLease{uid: lease.UID, version: lease.ResourceVersion, at: m.opts.now(), present: before.present,
		duration: max(m.opts.Duration, time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0))*time.Second),
		leaving:  lease.Annotations[leavingAnnotation] != "", tableUID: types.UID(lease.Annotations[tableUIDAnnotation])}
	if s.tableUID == "" && s.uid == before.uid {
		s.tableUID = before.tableUID // its member does not remove that
	}
	return s
}

// observeTable takes over a table that is newer than the one known. A table that cannot be
// read is none: nobody may take a slot whose owner is not known.
func (m *Member) observeTable(ctx context.Context, lease *coordinationv1.Lease) {
	g := &m.group
	if g.tableLease != nil && (older(lease, g.tableLease) || g.tableLease.ResourceVersion == lease.ResourceVersion) {
		return
	}
	var t table
	if err := json.Unmarshal([]byte(lease.Annotations[tableAnnotation]), &t); err != nil {
		m.noTable(ctx, lease, fmt.Errorf("the annotation %s of the Lease %s/%s cannot be read; end all members, and remove the Lease: %w", tableAnnotation, m.opts.Namespace, m.opts.Group, err))
		return
	}
	g.take(t, lease)
}

func (g *groupView) take(t table, lease *coordinationv1.Lease) {
	g.table, g.tableLease, g.unreadable, g.tableErr, g.conflicts = t, lease, "", nil, 0
}

// noTable reports a Lease that should have the table and does not, once for each version.
func (m *Member) noTable(ctx context.Context, lease *coordinationv1.Lease, err error) {
	if g := &m.group; g.unreadable != lease.ResourceVersion {
		g.unreadable = lease.ResourceVersion
		g.tableErr = m.failed(ctx, "reading the table", err)
	}
}

// outdated reports whether the copy has a state of the group's Lease from before it was gone.
func (g *groupView) outdated(lease *coordinationv1.Lease) bool {
	return g.tableGone != nil && g.tableGone.UID == lease.UID &&
		!tarn.Version(g.tableGone.ResourceVersion).OlderThan(tarn.Version(lease.ResourceVersion))
}

// replaced reports whether there is a table, and the member's slots are from another one:
// somebody deleted the Lease of the group, and a member made it anew. A new member makes an
// empty one. So nobody takes a slot without owner while anybody has slots of another table,
// and everybody writes its own slots into the new one before it says that it has that one.
func (g *groupView) replaced() bool {
	return g.tableLease != nil && g.tableUID != "" && g.tableUID != g.tableLease.UID
}

// agreed reports whether all members that may work have slots of this table only. It is
// certain once the copy of the Leases has the table: what others wrote before is in it too.
func (g *groupView) agreed(now time.Time) bool {
	if g.tableLease == nil || g.tableSeen != g.tableLease.UID || g.tableUID != g.tableLease.UID {
		return false
	}
	for _, s := range g.seen {
		if !s.dead(now) && s.tableUID != "" && s.tableUID != g.tableUID {
			return false
		}
	}
	return true
}

// names reports whether a member is in the table.
func (t *table) names(id string) bool {
	return slices.ContainsFunc(t[:], func(s slot) bool { return s.Owner == id || s.Next == id })
}

// owns reports whether the member owns a slot.
func (g *groupView) owns() bool {
	return slices.ContainsFunc(g.table[:], func(s slot) bool { return s.Owner == g.identity })
}

// members are those that renew their Leases, this one included.
func (g *groupView) members(now time.Time) []string {
	ids := []string{g.identity}
	for id, s := range g.seen {
		if s.present && !s.silent(now) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// staying are the other members that do not leave.
func (g *groupView) staying(now time.Time) []string {
	return slices.DeleteFunc(g.members(now), func(id string) bool { return id == g.identity || g.seen[id].leaving })
}
