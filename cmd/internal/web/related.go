package web

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
	"github.com/tarnproject/tarn/internal/render"
	"github.com/tarnproject/tarn/memory"
)

// ownerIndex is the name of the index that finds what an object owns.
const ownerIndex = "owner uid"

// maxRelated is how many owners, and how many dependents of each table, are named;
// all are counted.
const maxRelated = 50

// addOwnerIndexes prepares the tables. A mirror may have several sites; they
// share the indexes.
func addOwnerIndexes(m *mirror.Mirror) error {
	for _, table := range m.Tables() {
		if _, there := table.Store().IndexFuncs()[ownerIndex]; there {
			continue
		}
		err := table.Store().AddIndex(ownerIndex, memory.IndexPath[mirror.Object]("metadata.ownerReferences[*].uid"))
		var objects tarn.ObjectErrors
		if err != nil && !errors.As(err, &objects) {
			return fmt.Errorf("web: %s cannot be indexed by owner: %w", table.Resource().Name(), err)
		}
	}
	return nil
}

// related is what belongs to an object, in both directions.
type related struct {
	Owners []link `json:"owners"`
	// MoreOwners is how many owners are not named.
	MoreOwners int          `json:"moreOwners,omitempty"`
	Dependents []dependents `json:"dependents"`
}

// link names an object. Without a table it cannot be followed, because its kind is
// not mirrored or it is gone.
type link struct {
	Kind   string   `json:"kind"`
	Name   string   `json:"name"`
	Table  string   `json:"table,omitempty"`
	Key    tarn.Key `json:"key,omitempty"`
	Status string   `json:"status,omitempty"`
}

// dependents are the objects of a table that an object owns.
type dependents struct {
	Table string `json:"table"`
	Kind  string `json:"kind"`
	Count int    `json:"count"`
	Links []link `json:"links"`
}

func (s *Site) related(key tarn.Key, object mirror.Object) (related, error) {
	found := related{Owners: []link{}, Dependents: []dependents{}}
	owners := object.GetOwnerReferences()
	if len(owners) > maxRelated {
		found.MoreOwners = len(owners) - maxRelated
		owners = owners[:maxRelated]
	}
	for _, owner := range owners {
		found.Owners = append(found.Owners, s.owner(s.cluster(key), object.GetNamespace(), owner))
	}
	for _, table := range s.mirror.Tables() {
		d, err := s.dependents(table, string(object.GetUID()))
		if err != nil {
			return found, err
		}
		if d.Count > 0 {
			found.Dependents = append(found.Dependents, d)
		}
	}
	return found, nil
}

// cluster is the prefix of the keys of an object's cluster, empty if there is only one. An
// owner is in the same cluster.
func (s *Site) cluster(key tarn.Key) tarn.Key {
	return s.mirror.ClusterPrefix(key)
}

func (s *Site) owner(cluster tarn.Key, namespace string, owner metav1.OwnerReference) link {
	l := link{Kind: render.Cut(owner.Kind, maxCell), Name: render.Cut(owner.Name, maxCell)}
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil {
		return l
	}
	for _, table := range s.mirror.Tables() {
		r := table.Resource()
		if r.Kind != owner.Kind || r.GVR.Group != gv.Group {
			continue
		}
		key := tarn.Key(owner.Name)
		if r.Namespaced {
			key = tarn.Key(namespace + "/" + owner.Name)
		}
		key = cluster + key
		if object, ok := table.Store().Get(key); ok && object.GetUID() == owner.UID {
			l.Table, l.Key, l.Status = r.Name(), key, s.status(table, object)
		}
	}
	return l
}

func (s *Site) dependents(table *mirror.Table, uid string) (dependents, error) {
	r := table.Resource()
	d := dependents{Table: r.Name(), Kind: r.Kind}
	if uid == "" {
		return d, nil
	}
	owned, err := table.Store().Lookup(ownerIndex, uid)
	if err != nil {
		return d, err
	}
	for key, object := range owned {
		d.Count++
		if d.Count <= maxRelated {
			d.Links = append(d.Links, link{Kind: r.Kind, Name: object.GetName(), Table: r.Name(), Key: key, Status: s.status(table, object)})
		}
	}
	return d, nil
}

// status is the status that the explorer shows for the object.
func (s *Site) status(table *mirror.Table, object mirror.Object) string {
	for _, c := range columnsOf(table.Resource()) {
		if c.Type == "status" {
			return c.cell(s.secretFilter.content(table, object))
		}
	}
	return ""
}
