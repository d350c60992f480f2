package e2e

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"
)

// Options shape a [Cluster].
type Options struct {
	// Controllers starts the controller-manager too: Deployments make pods then.
	Controllers bool
	// Features are feature gates of the API server: "A=true,B=false".
	Features string
}

// Cluster is an API server with its etcd, and a controller-manager if wanted.
//
// All live in the test's temporary folder and end with the test. Methods fail
// the test if they cannot do what they say; they are called from the test's own
// goroutine.
type Cluster struct {
	*Endpoint
	dir         string
	credentials credentials
	etcd        *etcd
	port        int
	features    string
	apiserver   *process
	controllers *process // nil if there are none
	kubeconfig  string
	snapshots   int
}

// Start brings a cluster up and waits until it can be used.
func Start(t testing.TB, options Options) *Cluster {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() { showLogs(t, dir) })
	port, credentials := freePorts(t, 1)[0], newCredentials(t, dir)
	c := &Cluster{
		Endpoint:    newEndpoint(t, fmt.Sprintf("127.0.0.1:%d", port), credentials.authority),
		dir:         dir,
		credentials: credentials,
		port:        port,
		features:    options.Features,
	}
	c.kubeconfig = c.writeKubeconfig(dir)
	c.etcd = newEtcd(t, dir)
	t.Cleanup(c.stop)
	c.etcd.start(t)
	c.Start()
	if options.Controllers {
		c.startControllers()
	}
	return c
}

// stop ends all programs.
func (c *Cluster) stop() {
	c.controllers.kill()
	c.apiserver.kill()
	c.etcd.process.kill()
}

// Kill ends the API server as a crash would. etcd stays.
func (c *Cluster) Kill() { c.apiserver.kill() }

// Start starts the API server, on the port it always has, and waits
// until it is ready. A controller-manager is started anew as well: the stage is
// not what is tested, and one that has lost its server can wait for good for a
// write of its own that its informers, which are client-go's, never show it.
func (c *Cluster) Start() {
	c.t.Helper()
	c.apiserver = startProcess(c.t, c.dir, "kube-apiserver", binary(c.t, "kube-apiserver"),
		"--etcd-servers="+c.etcd.clientURL(),
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", c.port),
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=10.0.0.0/24",
		"--tls-cert-file="+c.credentials.certificate, "--tls-private-key-file="+c.credentials.key,
		"--token-auth-file="+c.credentials.tokens,
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+c.credentials.serviceAccountKey,
		"--service-account-signing-key-file="+c.credentials.serviceAccountKey,
		"--feature-gates="+c.features,
	)
	c.apiserver.waitReady(c.t, 2*time.Minute, c.ready)
	if c.controllers != nil {
		c.controllers.kill()
		c.startControllers()
	}
}

func (c *Cluster) startControllers() {
	c.t.Helper()
	c.controllers = startControllerManager(c.t, c.dir, c.kubeconfig, c.credentials)
}

// startControllerManager starts a controller-manager for the server that a
// kubeconfig leads to.
func startControllerManager(t testing.TB, dir, kubeconfig string, credentials credentials) *process {
	t.Helper()
	return startProcess(t, dir, "kube-controller-manager", binary(t, "kube-controller-manager"),
		"--kubeconfig="+kubeconfig,
		"--controllers=deployment-controller,replicaset-controller,serviceaccount-controller,root-ca-certificate-publisher-controller,namespace-controller,garbage-collector-controller",
		"--leader-elect=false",
		"--secure-port=0",
		"--service-account-private-key-file="+credentials.serviceAccountKey,
		"--root-ca-file="+credentials.certificate,
		"--kube-api-qps=2000", "--kube-api-burst=4000",
		"--concurrent-deployment-syncs=20", "--concurrent-replicaset-syncs=20",
	)
}

// Compact forgets everything before now. Watchers do not notice while the API
// server remembers; see Kill.
func (c *Cluster) Compact() {
	c.t.Helper()
	if err := c.etcd.compact(c.Revision()); err != nil {
		c.t.Fatal(err)
	}
}

// Revision is the newest version of anything.
func (c *Cluster) Revision() int64 {
	c.t.Helper()
	revision, err := c.etcd.revision()
	if err != nil {
		c.t.Fatal(err)
	}
	return revision
}

// Snapshot writes down the state of the cluster.
func (c *Cluster) Snapshot() (restore func()) {
	c.t.Helper()
	c.snapshots++
	path := filepath.Join(c.dir, fmt.Sprintf("snapshot-%d.db", c.snapshots))
	if err := c.etcd.snapshot(path); err != nil {
		c.t.Fatal(err)
	}
	return func() { c.restore(path) }
}

// restore takes the cluster back to a snapshot. Of the programs only etcd has
// anything to lose, and is asked to end; the others are killed, because an API
// server takes its time when it has watchers.
func (c *Cluster) restore(snapshot string) {
	c.t.Helper()
	c.controllers.kill()
	c.apiserver.kill()
	c.etcd.process.terminate()
	c.etcd.restore(c.t, snapshot)
	c.etcd.start(c.t)
	c.Start()
}
