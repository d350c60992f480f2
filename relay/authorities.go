package relay

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Where API servers publish the authorities of client certificates, for servers that stand
// beside them. Reading it needs the role extension-apiserver-authentication-reader of
// kube-system.
const (
	authoritiesNamespace = "kube-system"
	authoritiesName      = "extension-apiserver-authentication"
	authoritiesKey       = "client-ca-file"
)

// authoritiesInterval is how often they are read again. They change once in years, and an
// authority that was added is needed when the first certificate of it is used.
const authoritiesInterval = time.Minute

// ClusterAuthorities are the authorities whose client certificates a cluster trusts. Pool
// is for [Options.ClientCAs].
//
// They are read again every minute instead of watched, because a role can give the right to
// read one ConfigMap, and few give the right to watch it.
type ClusterAuthorities struct {
	client kubernetes.Interface
	logger *slog.Logger
	text   string
	pool   atomic.Pointer[x509.CertPool]
}

// NewClusterAuthorities reads the authorities of the cluster of a config.
func NewClusterAuthorities(ctx context.Context, config *rest.Config, logger *slog.Logger) (*ClusterAuthorities, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	a := &ClusterAuthorities{client: client, logger: logger}
	return a, a.read(ctx)
}

// Pool returns the authorities as they were last read.
func (a *ClusterAuthorities) Pool() *x509.CertPool { return a.pool.Load() }

// Run reads the authorities again every minute, until ctx ends. If that fails, the last
// ones stay in use.
func (a *ClusterAuthorities) Run(ctx context.Context) {
	ticker := time.NewTicker(authoritiesInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := a.read(ctx); err != nil && ctx.Err() == nil {
			a.logger.Error("the authorities of client certificates cannot be read again; those before stay", "error", err)
		}
	}
}

func (a *ClusterAuthorities) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	config, err := a.client.CoreV1().ConfigMaps(authoritiesNamespace).Get(ctx, authoritiesName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read the authorities of client certificates from the ConfigMap %s in %s: %w; the role extension-apiserver-authentication-reader there gives the right to", authoritiesName, authoritiesNamespace, err)
	}
	text := config.Data[authoritiesKey]
	if text == a.text && a.pool.Load() != nil {
		return nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(text)) {
		return fmt.Errorf("the ConfigMap %s in %s has no certificates in %s: the cluster has no authority for client certificates, or does not publish it", authoritiesName, authoritiesNamespace, authoritiesKey)
	}
	a.text = text
	a.pool.Store(pool)
	return nil
}
