package e2e

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Endpoint is an API server as its clients know it: an address, and a certificate
// to trust.
type Endpoint struct {
	t         testing.TB
	address   string
	authority []byte
	admin     kubernetes.Interface
}

func newEndpoint(t testing.TB, address string, authority []byte) *Endpoint {
	t.Helper()
	e := &Endpoint{t: t, address: address, authority: authority}
	e.admin = e.Client(AdminToken)
	return e
}

// Address is where the API server listens.
func (e *Endpoint) Address() string { return e.address }

// Config is for clients who identify themselves by a token. They are not slowed
// down by client-go's own limits.
func (e *Endpoint) Config(token string) *rest.Config {
	return &rest.Config{
		Host:            "https://" + e.address,
		BearerToken:     token,
		TLSClientConfig: rest.TLSClientConfig{CAData: e.authority},
		QPS:             -1,
		ContentConfig: rest.ContentConfig{
			ContentType:        "application/vnd.kubernetes.protobuf",
			AcceptContentTypes: "application/vnd.kubernetes.protobuf,application/json",
		},
	}
}

// Client is a typed client straight to the server, for a token.
func (e *Endpoint) Client(token string) kubernetes.Interface {
	e.t.Helper()
	client, err := kubernetes.NewForConfig(e.Config(token))
	if err != nil {
		e.t.Fatal(err)
	}
	return client
}

// Admin is the client of a user who may do everything.
func (e *Endpoint) Admin() kubernetes.Interface { return e.admin }

// Proxy puts a proxy before the API server. It ends with the test.
func (e *Endpoint) Proxy() *Proxy {
	e.t.Helper()
	return NewProxy(e.t, e.address)
}

// Namespace creates a namespace.
func (e *Endpoint) Namespace(name string) {
	e.t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := e.admin.CoreV1().Namespaces().Create(e.t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		e.t.Fatal(err)
	}
}

// ready asks the server with a connection of its own, which does not linger.
func (e *Endpoint) ready() error {
	config := e.Config(AdminToken)
	config.Timeout = 10 * time.Second
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(context.Background()).Error()
}

// eventually tries until there is no error, and fails the test with the last one
// when the time is over.
func (e *Endpoint) eventually(within time.Duration, try func(context.Context) error) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), within)
	defer cancel()
	var last error
	for {
		err := try(ctx)
		if err == nil {
			return
		}
		if ctx.Err() == nil {
			last = err // not that the time was over while it was tried
		}
		select {
		case <-ctx.Done():
			e.t.Fatalf("not so after %v: %v", within, last)
		case <-time.After(200 * time.Millisecond):
		}
	}
}
