package ondisk

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/kube"
)

// A process finds another cluster at the same address, and ends before it could read all
// namespaces. The next one does not take the rest for content of the new cluster.
func TestAnotherClusterReadInPart(t *testing.T) {
	for name, opts := range map[string][]Option{"in memory too": nil, "on disk only": {Only()}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := apiserver.New(apiserver.Options{AnyNamespace: true})
				defer func() { server.Close() }()
				other := pod("b1", "node-1")
				other.Namespace = "other"
				must(t, server.Put(pod("a1", "node-1"), other))
				w, dir, more := &tap{}, directory(t), []kube.Option{kube.WatchList(false), kube.Namespaces("default", "other")}
				first := startProcess(t, dir, server, w, opts, more...)
				must(t, first.WaitSynced(t.Context()))
				first.converged(server)
				first.end()

				server.Close()
				server = apiserver.New(apiserver.Options{AnyNamespace: true})
				for i := range 20 { // it is at a later version
					must(t, server.Put(pod("z1", fmt.Sprint("node-", i))))
				}
				w.forbidden = "other"
				second := startProcess(t, dir, server, w, opts, more...)
				time.Sleep(time.Minute)
				if _, ok := second.Get("default/z1"); !ok {
					t.Error("the namespace that may be read was not read")
				}
				second.end()

				w.forbidden = ""
				third := startProcess(t, dir, server, w, opts, more...)
				must(t, third.WaitSynced(t.Context()))
				third.converged(server)
				third.end()
			})
		})
	}
}
