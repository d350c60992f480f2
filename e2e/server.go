package e2e

import (
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Server is an API server that a test can treat badly: the real one, [Cluster],
// or the one of package apiserver, [Embedded]. Scenarios see nothing else, so that
// what they show of one can be compared with what they show of the other.
//
// Methods fail the test if they cannot do what they say; they are called from the
// test's own goroutine.
type Server interface {
	// Config is for clients with a token, Admin one who may do everything.
	Config(token string) *rest.Config
	Admin() kubernetes.Interface
	// writeKubeconfig writes a file for programs who may do everything, and returns
	// its path.
	writeKubeconfig(dir string) string
	// Proxy is a new one before the server.
	Proxy() *Proxy

	// Namespace creates a namespace that pods can be put into, and Pods one with
	// so many pods, which run. Settle waits until nobody but the test has anything
	// left to do to the pods there.
	Namespace(name string)
	Pods(namespace string, n int)
	Settle(namespace string)
	StartKubelet() *Kubelet
	StartChurn(namespace string) *Churn
	WaitWrites(churn *Churn, n int64)

	// Kill ends the server as a crash would. Start has it come back, with all that
	// was written and nothing that was only remembered: no watch can be resumed
	// from before.
	Kill()
	Start()
	// Compact forgets everything before now. Watchers that are connected do not
	// notice.
	Compact()
	// Snapshot writes down the state, and returns what takes the server back to it,
	// as an administrator would: everything is stopped, the data replaced,
	// everything started. Versions go back.
	Snapshot() (restore func())
	// Revision is the newest version of anything.
	Revision() int64

	// IssueToken returns a token of an account in a namespace. It is good until
	// RevokeToken is told its name.
	IssueToken(namespace, account, name string) string
	RevokeToken(namespace, name string)
}

var (
	_ Server = (*Cluster)(nil)
	_ Server = (*Embedded)(nil)
)
