package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// project is a module whose tests are run.
type project struct {
	name, path, version string
	// packages are arguments of go test.
	packages []string
	swaps    []swap
	// ci are the swaps that are quick enough for every change, and ciPackages the
	// packages, if not all.
	ci, ciPackages []string
	// ginkgo says that the packages are suites of specs.
	ginkgo bool
	// skip matches tests that are not run, since they fail with theirs too, or take too
	// long.
	skip    string
	timeout time.Duration
	known   []known
	// clientGo is the version of client-go to test with, 0.36, if the project does not
	// compile with the one that we require. What it takes from its own repository gets
	// that version too.
	clientGo string
}

// known is a difference that is right, and why.
type known struct {
	swap, test, why string
}

func (p project) String() string {
	names := []string{}
	for _, s := range p.swaps {
		if slices.Contains(p.ci, s.name) {
			s.name += " (ci)"
		}
		names = append(names, s.name)
	}
	return fmt.Sprintf("%s: %s@%s %s; swaps %s", p.name, p.path, p.version, strings.Join(p.packages, " "), strings.Join(names, ", "))
}

// imports swaps the import paths, as docs/migrate-client-go.md asks users to.
var imports = swap{name: "imports", imports: map[string]string{
	"k8s.io/client-go/tools/cache":               library + "/cache",
	"k8s.io/client-go/tools/cache/testing":       library + "/cache/testing",
	"k8s.io/client-go/tools/cache/synctrack":     library + "/cache/synctrack",
	"k8s.io/client-go/informers":                 library + "/informers",
	"k8s.io/client-go/dynamic/dynamicinformer":   library + "/informers/dynamicinformer",
	"k8s.io/client-go/metadata/metadatainformer": library + "/informers/metadatainformer",
}}

const runtimePath = "sigs.k8s.io/controller-runtime"

// The options of controller-runtime that docs/migrate-controller-runtime.md names. Its
// own packages that ours imports cannot import ours.
var (
	newCache = swap{name: "NewCache", names: map[string]string{
		runtimePath + "/pkg/cache.New": ctrlcache + ".NewCache",
	}}
	newClient = swap{name: "NewClient", names: map[string]string{
		runtimePath + "/pkg/cache.New":  ctrlcache + ".NewCache",
		runtimePath + "/pkg/client.New": ctrlcache + ".NewClient",
	}, except: []string{"pkg/client", "pkg/envtest"}}
	newInformer = swap{name: "NewInformer", names: map[string]string{
		runtimePath + "/pkg/cache.New": runtimePath + "/pkg/peers.New",
	}, add: map[string]string{"pkg/peers/peers.go": `package peers

import (
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"` + ctrlcache + `"
)

func New(cfg *rest.Config, opts cache.Options) (cache.Cache, error) {
	if opts.NewInformer == nil {
		opts.NewInformer = ctrlcache.NewInformer
	}
	return cache.New(cfg, opts)
}
`}}
)

// importsIn is imports for some directories of a project.
func importsIn(dirs ...string) swap {
	s := imports
	s.only = dirs
	return s
}

var projects = []project{
	{
		name: "controller-runtime", path: runtimePath, version: "v0.25.2", ginkgo: true, ci: []string{"NewCache"},
		packages: []string{"./pkg/cache", "./pkg/builder", "./pkg/cluster", "./pkg/controller", "./pkg/handler",
			"./pkg/internal/controller", "./pkg/internal/source", "./pkg/manager", "./pkg/reconcile", "./pkg/source"},
		ciPackages: []string{"./pkg/cache", "./pkg/builder", "./pkg/source"},
		swaps:      []swap{newCache, newClient, newInformer, imports},
	},
	{
		name: "controller-runtime-through-a-relay", path: runtimePath, version: "v0.25.2", ginkgo: true,
		packages: []string{"./pkg/cache", "./pkg/client", "./pkg/handler", "./pkg/source"},
		swaps:    []swap{throughRelay},
	},
	{
		name: "prometheus", path: "github.com/prometheus/prometheus", version: "v0.315.0", ci: []string{"imports"},
		packages: []string{"./discovery/kubernetes"}, swaps: []swap{imports},
	},
	{
		name: "client-go", path: "k8s.io/client-go", version: "v0.37.2",
		packages: []string{"./dynamic/dynamiclister", "./examples/fake-client", "./metadata/metadatalister", "./tools/watch"},
		swaps:    []swap{importsIn("dynamic/dynamiclister", "examples/fake-client", "metadata/metadatalister", "tools/watch")},
	},
	{
		name: "endpointslice", path: "k8s.io/endpointslice", version: "v0.37.2", ci: []string{"imports"},
		packages: []string{"./..."}, swaps: []swap{imports},
	},
	{
		name: "dynamic-resource-allocation", path: "k8s.io/dynamic-resource-allocation", version: "v0.37.2", ci: []string{"imports"},
		packages: []string{"./deviceclass/...", "./resourceslice/..."}, swaps: []swap{imports},
	},
	{
		name: "sample-controller", path: "k8s.io/sample-controller", version: "v0.36.3",
		packages: []string{"."}, swaps: []swap{imports},
	},
	{
		name: "cloud-provider", path: "k8s.io/cloud-provider", version: "v0.37.2",
		packages: []string{"./controllers/..."}, swaps: []swap{imports},
	},
	{
		name: "kube-aggregator", path: "k8s.io/kube-aggregator", version: "v0.37.2",
		packages: []string{"./pkg/apiserver", "./pkg/controllers/..."}, swaps: []swap{imports},
	},
	{
		name: "vertical-pod-autoscaler", path: "k8s.io/autoscaler/vertical-pod-autoscaler", version: "v1.8.1",
		packages: []string{"./pkg/admission-controller/...", "./pkg/target/...", "./pkg/updater/...", "./pkg/utils/...", "./pkg/recommender/input/..."},
		swaps:    []swap{imports},
	},
	{
		name: "apiserver", path: "k8s.io/apiserver", version: "v0.37.2",
		packages: []string{"./pkg/admission/plugin/policy/generic", "./pkg/server/dynamiccertificates", "./pkg/storage/cacher",
			"./pkg/util/flowcontrol", "./pkg/util/peerproxy"},
		swaps: []swap{imports},
	},
	{
		name: "coredns", path: "github.com/coredns/coredns", version: "v1.15.0",
		packages: []string{"./plugin/kubernetes/..."}, swaps: []swap{imports},
	},
	{
		name: "cert-manager", path: "github.com/cert-manager/cert-manager", version: "v1.21.2",
		packages: []string{"./internal/informers", "./pkg/controller", "./pkg/controller/certificates/trigger", "./pkg/server/tls/authority"},
		swaps:    []swap{imports},
	},
	{
		name: "kubernetes", path: "k8s.io/kubernetes", version: "v1.36.3", timeout: 30 * time.Minute,
		packages: []string{"./pkg/controller/cronjob", "./pkg/controller/daemon", "./pkg/controller/deployment", "./pkg/controller/disruption",
			"./pkg/controller/endpoint", "./pkg/controller/endpointslice", "./pkg/controller/endpointslicemirroring", "./pkg/controller/garbagecollector",
			"./pkg/controller/job", "./pkg/controller/namespace/...", "./pkg/controller/replicaset", "./pkg/controller/resourcequota",
			"./pkg/controller/serviceaccount", "./pkg/controller/statefulset", "./pkg/controller/ttlafterfinished",
			"./pkg/client/tests", "./pkg/controller/devicetainteviction", "./pkg/controller/podautoscaler", "./pkg/controller/resourceclaim",
			"./pkg/controller/tainteviction", "./pkg/kubelet/util/manager", "./pkg/proxy/config", "./pkg/scheduler/util/assumecache"},
		swaps: []swap{imports}, clientGo: "v0.36.3",
	},
}
