// Package contender holds the ways to keep a live copy of a cluster's pods in a
// process that the benchmark compares, each set up as its users would.
package contender

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn/bench/replay"
)

// Contender is one way to keep a copy.
type Contender struct {
	Name string
	Doc  string
	// Format is what the server must serve for it.
	Format replay.Format
	// Environment is set for its process.
	Environment []string
	// Leaves names the files that it leaves in the setup's folder for a later
	// contender; that is its only purpose.
	Leaves string
	// Start begins to copy. It need not wait for anything; the copy ends with
	// ctx.
	Start func(ctx context.Context, s Setup) (Copy, error)
}

// Setup is what a contender is given.
type Setup struct {
	// Config leads to the server.
	Config *rest.Config
	// Changed must be called with every new state of an object, by a handler of the
	// kind that the contender offers: controllers always have a handler.
	Changed func(object metav1.Object)
	// Folder is for contenders with files.
	Folder string
}

// Copy is what a contender has made.
type Copy struct {
	// Synced waits until the copy is complete.
	Synced func(ctx context.Context) error
	// Get reads one object in the way that users do.
	Get func(namespace, name string) (metav1.Object, error)
	// List reads all objects in the way that users do, and visits them.
	List func(visit func(metav1.Object)) error

	// Contenders with files also have: Settled, which waits until everything is in
	// them; Close; and Leave, which closes them, and returns their size and that of
	// the objects' JSON.
	Settled func(ctx context.Context) error
	Close   func() error
	Leave   func(ctx context.Context) (files, json int64, err error)
}

// All lists the contenders, client-go's first.
func All() []Contender {
	return slices.Concat(clientGo(), controllerRuntime(), tarns(), onDisk())
}

// ByName finds a contender.
func ByName(name string) (Contender, bool) {
	all := All()
	i := slices.IndexFunc(all, func(c Contender) bool { return c.Name == name })
	if i < 0 {
		return Contender{}, false
	}
	return all[i], true
}

const (
	typeJSON     = "application/json"
	typeProtobuf = "application/vnd.kubernetes.protobuf"
)

// inProtobuf is the config of a client that prefers protobuf, as controllers
// have it.
func inProtobuf(c *rest.Config) *rest.Config {
	c = rest.CopyConfig(c)
	c.ContentType, c.AcceptContentTypes = typeProtobuf, typeProtobuf+","+typeJSON
	return c
}

// listing is the environment in which client-go lists instead of streaming the
// list.
var listing = []string{"KUBE_FEATURE_WatchListClient=false"}
