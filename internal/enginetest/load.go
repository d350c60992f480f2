package enginetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
)

// load changes objects of a server and tells the model. Nobody else may write to the server,
// so that its version after a change is that of the change.
type load struct {
	server *apiserver.Server
	model  *Model
	dice   *rand.Rand
	exists map[string]bool
}

const (
	loadObjects = 40
	loadPause   = 3 * time.Millisecond
)

// run makes changes until ctx ends.
func (l *load) run(ctx context.Context) error {
	ticker := time.NewTicker(loadPause)
	defer ticker.Stop()
	for n := 0; ; n++ {
		if err := l.step(n); err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// step adds, changes or deletes one object.
func (l *load) step(n int) error {
	name := fmt.Sprint("object-", l.dice.IntN(loadObjects))
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{"n": fmt.Sprint(n)}}
	deleted := l.exists[name] && l.dice.IntN(5) == 0
	var err error
	if deleted {
		err = l.server.Delete(object)
	} else {
		err = l.server.Put(object)
	}
	l.exists[name] = !deleted
	l.model.Add(State{Key: tarn.Key("default/" + name), Version: tarn.Version(l.server.Version()), Deleted: deleted})
	return err
}
