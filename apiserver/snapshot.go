package apiserver

import (
	"errors"
	"slices"
)

// A Snapshot is the whole state of a server at one version. It can be restored
// any number of times, into the server that it was taken of.
//
// It costs a pointer for each object: stored objects never change.
type Snapshot struct {
	of      *Server
	version int64
	entries map[*collection][]*Object
	custom  []*resource
}

// Version is the resourceVersion that the server was at.
func (s *Snapshot) Version() string { return versionText(s.version) }

// Snapshot takes down the state as it is now, as a backup of etcd would.
func (s *Server) Snapshot() *Snapshot {
	s.defining.Lock()
	defer s.defining.Unlock()
	s.state.mu.RLock()
	defer s.state.mu.RUnlock()
	taken := &Snapshot{of: s, version: s.state.version, entries: map[*collection][]*Object{}, custom: s.custom}
	for c := range s.state.collections {
		taken.entries[c] = slices.Clone(c.entries)
	}
	return taken
}

// Restore goes back to a snapshot of this server, as a cluster does when its etcd
// is restored from a backup: later writes are gone, versions go back and are given
// out a second time, for other content. All watches end, and everything before the
// snapshot has been forgotten, as [Server.Compact] does.
//
// It is for tests of programs that keep copies: a client that resumes from its last
// version gets no event until the server has reached that version again.
func (s *Server) Restore(snapshot *Snapshot) error {
	if snapshot == nil || snapshot.of != s {
		return errors.New("apiserver: restore: the snapshot is not one of this server; take it with Snapshot of the same")
	}
	s.defining.Lock()
	defer s.defining.Unlock()
	s.custom = snapshot.custom
	s.state.restore(snapshot)
	for _, r := range s.custom {
		if len(r.versions) > 0 {
			r.content.selects.Store(r.versions[0])
		}
	}
	s.catalog.Store(newCatalog(s.builtin, s.custom))
	return nil
}

// restore replaces everything. Watchers of what there was find that their place
// in the history is gone, or their resource.
func (s *state) restore(snapshot *Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.collections {
		if _, stays := snapshot.entries[c]; !stays {
			c.end()
		}
	}
	s.version = snapshot.version
	s.collections = map[*collection]bool{}
	for c, entries := range snapshot.entries {
		c.entries = slices.Clone(entries)
		c.history.reset(snapshot.version)
		c.serveAgain()
		s.collections[c] = true
	}
}
