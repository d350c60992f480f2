package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Options shape a [Cluster].
type Options struct {
	// Controllers starts the controller-manager too: Deployments make pods then.
	Controllers bool
}

// Cluster is an API server with its etcd, and a controller-manager if wanted.
//
// All live in the test's temporary folder and end with the test. Methods fail
// the test if they cannot do what they say; they are called from the test's own
// goroutine.
type Cluster struct {
	t           testing.TB
	dir         string
	credentials credentials
	etcd        *etcd
	port        int
	apiserver   *process
	controllers *process // nil if there are none
	kubeconfig  string
	snapshots   int
	admin       kubernetes.Interface
}

// Start brings a cluster up and waits until it can be used.
func Start(t testing.TB, options Options) *Cluster {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() { showLogs(t, dir) })
	c := &Cluster{
		t:           t,
		dir:         dir,
		credentials: newCredentials(t, dir),
		port:        freePorts(t, 1)[0],
	}
	c.kubeconfig = c.writeKubeconfig()
	c.etcd = newEtcd(t, dir)
	t.Cleanup(c.stop)
	c.etcd.start(t)
	c.StartAPIServer()
	if options.Controllers {
		c.startControllers()
	}
	c.admin = c.Client(AdminToken)
	return c
}

// stop ends all programs.
func (c *Cluster) stop() {
	c.controllers.kill()
	c.apiserver.kill()
	c.etcd.process.kill()
}

// Address is where the API server listens.
func (c *Cluster) Address() string { return fmt.Sprintf("127.0.0.1:%d", c.port) }

// Config is for clients who identify themselves by a token. They are not slowed
// down by client-go's own limits.
func (c *Cluster) Config(token string) *rest.Config {
	return &rest.Config{
		Host:            "https://" + c.Address(),
		BearerToken:     token,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.credentials.authority},
		QPS:             -1,
		ContentConfig: rest.ContentConfig{
			ContentType:        "application/vnd.kubernetes.protobuf",
			AcceptContentTypes: "application/vnd.kubernetes.protobuf,application/json",
		},
	}
}

// Client is a typed client straight to the server, for a token.
func (c *Cluster) Client(token string) kubernetes.Interface {
	c.t.Helper()
	client, err := kubernetes.NewForConfig(c.Config(token))
	if err != nil {
		c.t.Fatal(err)
	}
	return client
}

// Admin is the client of a user who may do everything.
func (c *Cluster) Admin() kubernetes.Interface { return c.admin }

// KillAPIServer ends the API server as a crash would.
func (c *Cluster) KillAPIServer() { c.apiserver.kill() }

// StartAPIServer starts the API server, on the port it always has, and waits
// until it is ready. A controller-manager is started anew as well: the stage is
// not what is tested, and one that has lost its server can wait for good for a
// write of its own that its informers, which are client-go's, never show it.
func (c *Cluster) StartAPIServer() {
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
	)
	c.apiserver.waitReady(c.t, 2*time.Minute, c.ready)
	if c.controllers != nil {
		c.controllers.kill()
		c.startControllers()
	}
}

// ready asks the server with a connection of its own, which does not linger.
func (c *Cluster) ready() error {
	config := c.Config(AdminToken)
	config.Timeout = 10 * time.Second
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(context.Background()).Error()
}

func (c *Cluster) startControllers() {
	c.t.Helper()
	c.controllers = startProcess(c.t, c.dir, "kube-controller-manager", binary(c.t, "kube-controller-manager"),
		"--kubeconfig="+c.kubeconfig,
		"--controllers=deployment-controller,replicaset-controller,serviceaccount-controller,root-ca-certificate-publisher-controller,namespace-controller,garbage-collector-controller",
		"--leader-elect=false",
		"--secure-port=0",
		"--service-account-private-key-file="+c.credentials.serviceAccountKey,
		"--root-ca-file="+c.credentials.certificate,
		"--kube-api-qps=2000", "--kube-api-burst=4000",
		"--concurrent-deployment-syncs=20", "--concurrent-replicaset-syncs=20",
	)
}

// CompactEtcd forgets everything before a revision; 0 means before now. Watchers
// do not notice while the API server remembers; see KillAPIServer.
func (c *Cluster) CompactEtcd(revision int64) {
	c.t.Helper()
	if revision == 0 {
		revision = c.Revision()
	}
	if err := c.etcd.compact(revision); err != nil {
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

// SnapshotEtcd writes down the state of the cluster and returns the file.
func (c *Cluster) SnapshotEtcd() string {
	c.t.Helper()
	c.snapshots++
	path := filepath.Join(c.dir, fmt.Sprintf("snapshot-%d.db", c.snapshots))
	if err := c.etcd.snapshot(path); err != nil {
		c.t.Fatal(err)
	}
	return path
}

// RestoreEtcd takes the cluster back to a snapshot, as an administrator would:
// everything is stopped, the data replaced, everything started. Versions go
// back. Of the programs only etcd has anything to lose, and is asked to end; the
// others are killed, because an API server takes its time when it has watchers.
func (c *Cluster) RestoreEtcd(snapshot string) {
	c.t.Helper()
	c.controllers.kill()
	c.apiserver.kill()
	c.etcd.process.terminate()
	c.etcd.restore(c.t, snapshot)
	c.etcd.start(c.t)
	c.StartAPIServer()
}
