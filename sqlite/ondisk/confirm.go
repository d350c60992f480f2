package ondisk

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/kube"
)

// confirmation checks which cluster the content on disk came from.
//
// Address and authority are compared before anything is served, without a request. A
// different cluster at the same address is detected when the server answers, before
// anything is read from it.
//
// A copy of several clusters has no common address. Each cluster is checked when it
// answers: by its uid, or by address and authority if that may not be read. So a cluster
// may move to another address and keep its content.
type confirmation struct {
	label labelled
	of    kube.Origin

	mu       sync.Mutex
	answered bool
	verdict  error
}

type labelled interface {
	Label() string
	SetLabel(label string, distrust bool, sections ...string) error
}

func newConfirmation(label labelled, of kube.Origin) *confirmation {
	return &confirmation{label: label, of: of}
}

// addTo adds the check to what was kept.
func (k *confirmation) addTo(kept *tarn.Kept) {
	if k.of.Cluster != nil {
		kept.ConfirmSection = k.confirmCluster
		return
	}
	kept.Confirm = k.confirm
}

// confirm asks the cluster for its uid, once for all sections.
func (k *confirmation) confirm(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.answered {
		return k.verdict
	}
	uid, err := k.of.ServerUID(ctx)
	if err != nil {
		return err
	}
	k.answered = true
	before := k.label.Label()
	if uid == "" || uid == before {
		return nil
	}
	other := before != ""
	if other {
		k.verdict = fmt.Errorf("%w: it is of the cluster %s, and this is %s", tarn.ErrOtherSource, before, uid)
	}
	if err := k.label.SetLabel(uid, other); err != nil && !other {
		return nil // the next write of objects reports it
	}
	return k.verdict
}

// knownCluster identifies a cluster in the label of a copy of several. UID is empty if it
// may not be read.
type knownCluster struct {
	UID    string `json:"uid,omitempty"`
	Server string `json:"server"`
}

// confirmCluster asks one of several clusters for its uid.
func (k *confirmation) confirmCluster(ctx context.Context, name string) error {
	client := k.of.Cluster(name)
	if client == nil {
		return nil // it is being removed
	}
	uid, err := client.ServerUID(ctx)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	all := map[string]knownCluster{}
	if text := k.label.Label(); text != "" && json.Unmarshal([]byte(text), &all) != nil {
		clear(all) // it is of another kind of copy, whose content was dropped
	}
	before, known := all[name]
	now := knownCluster{uid, client.Server()}
	if before == now {
		return nil
	}
	other := known && (before.UID != now.UID || now.UID == "")
	all[name] = now
	maps.DeleteFunc(all, func(name string, _ knownCluster) bool { return k.of.Cluster(name) == nil })
	label, err := json.Marshal(all)
	if err != nil {
		return err
	}
	var verdict error
	if other {
		verdict = fmt.Errorf("%w: %s is another cluster now, at %s", tarn.ErrOtherSource, name, now.Server)
	}
	if err := k.label.SetLabel(string(label), other, name); err != nil && !other {
		return nil // the next write of objects reports it
	}
	return verdict
}
