package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"

	"github.com/tarnproject/tarn/apiserver"
)

// Embedded is the API server of package apiserver behind TLS on loopback, as a
// [Cluster] is. It needs no programs and is up in milliseconds. No controllers
// run: pods are made by hand.
type Embedded struct {
	*Endpoint
	api             *apiserver.Server
	authorizer      *authorizer
	certificate     tls.Certificate
	http            *http.Server     // of the last start
	trackedListener *trackedListener // of the same
	ended           chan struct{}    // closed when http has
}

// StartEmbedded brings the server up. It ends with the test.
func StartEmbedded(t testing.TB) *Embedded {
	t.Helper()
	authority, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, []string{"localhost"})
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.X509KeyPair(authority, key)
	if err != nil {
		t.Fatal(err)
	}
	e := &Embedded{
		Endpoint:    newEndpoint(t, fmt.Sprintf("127.0.0.1:%d", freePorts(t, 1)[0]), authority),
		api:         apiserver.New(apiserver.Options{Tokens: []string{AdminToken, GuestToken}}),
		certificate: certificate,
	}
	t.Cleanup(func() {
		e.Kill()
		e.api.Close()
	})
	e.authorizer = newAuthorizer(t, e.api)
	e.listen()
	return e
}

// listen serves on the port that the server always has.
func (e *Embedded) listen() {
	e.t.Helper()
	listener, err := net.Listen("tcp", e.address)
	if err != nil {
		e.t.Fatal(err)
	}
	server, ended := &http.Server{
		Handler:   e.authorizer,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{e.certificate}},
		ErrorLog:  log.New(io.Discard, "", 0), // clients are cut off on purpose
	}, make(chan struct{})
	e.http, e.trackedListener, e.ended = server, &trackedListener{Listener: listener}, ended
	go func() {
		defer close(ended)
		_ = server.ServeTLS(e.trackedListener, "", "") // says that it was closed
	}()
}

// Kill stops listening and resets all connections.
func (e *Embedded) Kill() {
	if e.http == nil {
		return
	}
	e.trackedListener.reset()
	_ = e.http.Close()
	<-e.ended
}

// trackedListener keeps the accepted connections, so that they can be reset, as
// when the server crashes.
type trackedListener struct {
	net.Listener
	mu     sync.Mutex
	closed bool
	conns  []net.Conn
}

func (e *trackedListener) Accept() (net.Conn, error) {
	conn, err := e.Listener.Accept()
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.conns = append(e.conns, conn)
	if e.closed {
		reset(conn)
	}
	return conn, nil
}

func (e *trackedListener) reset() {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.resetAll()
}

// resetAll resets the connections of now; others are accepted.
func (e *trackedListener) resetAll() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, conn := range e.conns {
		reset(conn)
	}
	e.conns = nil
}

// Start listens again. A real server writes a lease when it is back, and its watch
// cache has lost all history, although etcd has it. This does the same.
func (e *Embedded) Start() {
	e.t.Helper()
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "apiserver"},
		Spec:       coordinationv1.LeaseSpec{RenewTime: new(metav1.NowMicro())},
	}
	if err := e.api.Put(lease); err != nil {
		e.t.Fatal(err)
	}
	e.api.Compact()
	e.listen()
}

// Compact removes all history before now.
func (e *Embedded) Compact() { e.api.Compact() }

// Snapshot saves the state, and returns a function that restores it.
func (e *Embedded) Snapshot() (restore func()) {
	snapshot := e.api.Snapshot()
	return func() {
		e.t.Helper()
		e.Kill()
		if err := e.api.Restore(snapshot); err != nil {
			e.t.Fatal(err)
		}
		e.listen()
	}
}

// Revision is the newest version of anything.
func (e *Embedded) Revision() int64 {
	e.t.Helper()
	revision, err := strconv.ParseInt(e.api.Version(), 10, 64)
	if err != nil {
		e.t.Fatal(err)
	}
	return revision
}

// Pods makes a namespace with n pods, as Deployments would have them, and waits
// until a running [Kubelet] has made each of them ready.
func (e *Embedded) Pods(namespace string, n int) {
	e.t.Helper()
	e.Namespace(namespace)
	for i := range n {
		pod := podOf(fmt.Sprintf("app-%d", i/largestDeployment), "")
		pod.GenerateName = pod.Labels["app"] + "-"
		if _, err := e.admin.CoreV1().Pods(namespace).Create(e.t.Context(), pod, metav1.CreateOptions{}); err != nil {
			e.t.Fatal(err)
		}
	}
	e.Settle(namespace)
}

// Settle waits until all pods of a namespace run.
func (e *Embedded) Settle(namespace string) {
	e.t.Helper()
	e.eventually(time.Minute, func(ctx context.Context) error {
		pending, err := e.admin.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{FieldSelector: "status.phase=Pending"})
		if err == nil && len(pending.Items) > 0 {
			err = fmt.Errorf("%d pods are pending", len(pending.Items))
		}
		return err
	})
}

// IssueToken returns a token of an account.
func (e *Embedded) IssueToken(namespace, account, name string) string {
	return e.authorizer.issue(namespace, account, name)
}

// RevokeToken makes a token invalid.
func (e *Embedded) RevokeToken(_, name string) { e.authorizer.revoke(name) }
