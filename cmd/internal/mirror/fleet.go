package mirror

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/cmd/internal/fleet"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/kube/wire"
)

// members are the clusters of a mirror of several.
//
// Each table is one copy with a section for each cluster, and keys that begin with the
// cluster's name. All objects are in one store and one pool: equal parts are held once, also
// across clusters.
type members struct {
	pool *wire.Pool

	// changing is held while clusters are added and removed, which takes some time.
	changing sync.Mutex
	mu       sync.Mutex
	list     []member
}

// member is one cluster.
type member struct {
	name string
	server
}

func (ms *members) all() []member {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	return slices.Clone(ms.list)
}

// client returns the client of a cluster, nil if there is none.
func (ms *members) client(name string) *kube.Client {
	for _, m := range ms.all() {
		if m.name == name {
			return m.server.client
		}
	}
	return nil
}

// add connects to a cluster and notes it.
func (ms *members) add(c fleet.Cluster) (member, error) {
	if ms.client(c.Name) != nil {
		return member{}, fmt.Errorf("mirror: there is a cluster %q already", c.Name)
	}
	if err := kube.CheckCluster(c.Name); err != nil {
		return member{}, err
	}
	s, err := connect(c.Config, kube.WithPool(ms.pool))
	if err != nil {
		return member{}, fmt.Errorf("cluster %s: %w", c.Name, err)
	}
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m := member{c.Name, s}
	ms.list = append(ms.list, m)
	slices.SortFunc(ms.list, func(a, b member) int { return strings.Compare(a.name, b.name) })
	return m, nil
}

func (ms *members) remove(name string) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	ms.list = slices.DeleteFunc(ms.list, func(m member) bool {
		if m.name == name {
			m.connections.CloseIdleConnections()
		}
		return m.name == name
	})
}

// StartFleet is [Start] for several clusters. Keys begin with the name of the cluster:
// "east/kube-system/coredns".
//
//   - A cluster that is unavailable blocks nothing: [Mirror.WaitSynced] returns when each
//     cluster is synced or has failed once. Health.Sections of a table has the state of
//     each.
//   - Clusters come and go as the fleet changes, and by [Mirror.AddCluster] and
//     [Mirror.RemoveCluster].
//   - All are narrowed to the same namespace, or to none.
func StartFleet(ctx context.Context, f *fleet.Fleet, resources []Resource, opts Options) (*Mirror, error) {
	switch err := check(resources, opts); {
	case err != nil:
		return nil, err
	case len(opts.Namespaces) > 1:
		return nil, fmt.Errorf("mirror: the namespaces %q of several clusters: name one, or copy all", opts.Namespaces)
	case opts.Verify > 0:
		return nil, errors.New("mirror: copies of several clusters are not compared while they run; compare one cluster at a time")
	}
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	m := &Mirror{done: make(chan struct{}), members: &members{pool: wire.NewPool()}}
	var servers []server
	for _, c := range f.Clusters() {
		member, err := m.members.add(c)
		if err != nil {
			return nil, err
		}
		servers = append(servers, member.server)
	}
	m.client = servers[0].client
	columns, err := m.openDisk(ctx, opts, resources, servers...)
	if err != nil {
		return nil, err
	}
	if err := m.makeTables(resources, columns, opts); err != nil {
		return nil, err
	}
	m.start(ctx, nil, func() { m.follow(ctx, f, opts.Logger) })
	return m, nil
}

// follow adds and removes clusters as the fleet changes.
func (m *Mirror) follow(ctx context.Context, f *fleet.Fleet, logger *slog.Logger) {
	for change := range f.Changes(ctx) {
		for _, name := range change.Removed {
			logger.Info("a cluster is removed", "cluster", name)
			if err := m.RemoveCluster(name); err != nil {
				logger.Error("a cluster was not removed in full; the next start removes the rest", "cluster", name, "error", err)
			}
		}
		for _, c := range change.Added {
			logger.Info("a cluster is added", "cluster", c.Name, "server", c.Config.Host)
			if err := m.AddCluster(c); err != nil {
				logger.Error("a cluster cannot be added; correct its kubeconfig", "cluster", c.Name, "error", err)
			}
		}
	}
}

// Fleet reports whether the mirror is of several clusters, even if there is one at the
// moment.
func (m *Mirror) Fleet() bool { return m.members != nil || len(m.Clusters()) > 0 }

// Clusters are the names of the clusters, sorted; none if the mirror is of one cluster,
// which has no name.
func (m *Mirror) Clusters() (names []string) {
	if m.members == nil {
		return m.clusters
	}
	for _, member := range m.members.all() {
		names = append(names, member.name)
	}
	return names
}

// ClusterPrefix is the part of a key that names the cluster, with a slash at its end; empty
// if the mirror is of one cluster, which has no name.
func (m *Mirror) ClusterPrefix(key tarn.Key) tarn.Key {
	if !m.Fleet() {
		return ""
	}
	name, _ := kube.SplitCluster(key)
	return kube.ClusterPrefix(name)
}

// AddCluster adds a cluster to a mirror of [StartFleet], and does not wait for it.
func (m *Mirror) AddCluster(c fleet.Cluster) error {
	if m.members == nil {
		return errOneCluster
	}
	m.members.changing.Lock()
	defer m.members.changing.Unlock()
	added, err := m.members.add(c)
	if err != nil {
		return err
	}
	for _, t := range m.tables {
		section, err := t.join(added)
		if err == nil {
			err = t.replica.AddSection(section)
		}
		if err != nil {
			return errors.Join(err, m.removeCluster(c.Name))
		}
	}
	return nil
}

// RemoveCluster removes a cluster with its objects, from the directory too.
func (m *Mirror) RemoveCluster(name string) error {
	if m.members == nil {
		return errOneCluster
	}
	m.members.changing.Lock()
	defer m.members.changing.Unlock()
	if m.members.client(name) == nil {
		return fmt.Errorf("mirror: there is no cluster %q", name)
	}
	return m.removeCluster(name)
}

var errOneCluster = errors.New("mirror: it is of one cluster; StartFleet copies several")

func (m *Mirror) removeCluster(name string) error {
	failed := make([]error, len(m.tables))
	var removing sync.WaitGroup
	for i, t := range m.tables {
		if !t.inputs.has(name) {
			continue // it could not be added
		}
		removing.Go(func() {
			failed[i] = t.replica.RemoveSection(name)
			t.inputs.remove(name)
		})
	}
	removing.Wait()
	m.members.remove(name)
	return errors.Join(failed...)
}

// join makes the section of a cluster.
func (t *Table) join(c member) (section tarn.Section[Object], err error) {
	sources, err := t.readFrom(c.server.client)
	if err != nil {
		return section, err
	}
	source, err := kube.InCluster[Object](c.name, sources[0])
	if err != nil {
		return section, err
	}
	return tarn.Section[Object]{
		Name: c.name, Source: t.inputs.add(c.name, sources[0], source, t.hides), Prefix: kube.ClusterPrefix(c.name), Independent: true,
	}, nil
}
