package main

// minor is a minor version of client-go, and the controller-runtime that belongs to it.
type minor struct {
	clientGo, runtime string
	// older says that it is not the one that go.mod names: names that it does not have
	// are left out by the tag, and the table of package informers is generated anew.
	older bool
	// missing are test sets that do not compile with it, and untested those whose tests do
	// not, and why.
	missing, untested map[string]string
}

// tag leaves out what client-go 0.36 does not have.
const tag = "tarn_client_go_0_36"

const (
	noReadYourWrites = "controller-runtime has the options for reading one's own writes, which `NewClient` implements, from 0.25 on"
	noBatches        = "client-go has the queues with batches and bookmarks, and the names and metrics of informers, which `cache` implements, from 0.36 on"
	needsCache       = "it builds on `cache`"
	noFields         = "its tests use methods of `metav1.FieldsV1` that apimachinery has from 0.36 on"
)

var minors = []minor{
	{clientGo: "v0.37.2", runtime: "v0.25.2"},
	{clientGo: "v0.36.6", runtime: "v0.24.1", older: true, missing: map[string]string{"ctrlcache": noReadYourWrites}},
	{
		clientGo: "v0.35.10", runtime: "v0.23.3", older: true,
		missing:  map[string]string{"cache": noBatches, "informers": needsCache, "ctrlcache": needsCache},
		untested: map[string]string{"kube/wire": noFields},
	},
}

// testSet is what is built and tested. tests selects the tests that represent all:
// those that speak to a server, read the wire, or are written against client-go's types.
type testSet struct {
	name, module string
	packages     []string
	tests        string
}

var testSets = []testSet{
	{"kube", ".", []string{"./kube"},
		"TestReflect|TestWatch|TestList|TestServers|TestSameAsClientGo|TestFailures|TestNoWatchList|TestConnection|TestClient|TestMedia|TestDiscovery"},
	{"kube/wire", ".", []string{"./kube/wire/..."},
		"TestProtobufEveryType|TestJSONEveryType|TestShareEveryType|TestLastStateEveryType|TestQuantityHasText"},
	{"cache", ".", []string{"./cache", "./cache/synctrack"},
		"TestReplica|TestDetectMutations|TestReflector|TestLostConnections|TestRewound|TestInformersShare|TestSharingSources|TestTransform|TestIndexers|TestRunWaits|TestPanic|TestListWatch|TestSuppliedSource|TestWaitFor|TestGenericLister|TestKeysLikeClientGo|TestClientGoEnds"},
	{"informers", ".", []string{"./informers", "./informers/dynamicinformer", "./informers/metadatainformer", "./informers/internal/wired"},
		"TestForConfig|TestClientset|TestUntypedClients|TestRESTClientOf|TestLife|TestStart|TestWaitForCacheSync|TestEvery|TestChoices|TestFiltered|TestSameRequests|TestForResource|TestTheSameAsStock"},
	{"ctrlcache", "ctrlcache", []string{"."},
		"TestInformers|TestOptions|TestReading|TestFieldSelectors|TestManager|TestReadYour|TestEveryOption|TestCopies"},
}

// pinned are the modules that a minor sets.
var pinned = []string{"k8s.io/api", "k8s.io/apimachinery", "k8s.io/client-go", "k8s.io/apiextensions-apiserver"}
