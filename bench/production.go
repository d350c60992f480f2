package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tarnproject/tarn/bench/podset"
)

// productionRace is the race whose server is reached as a kube-apiserver is: by TLS and
// HTTP/2, with lists above 128 KB compressed. Streams of initial events are not
// compressed, so the contenders that list are those that inflate.
var productionRace = race{
	name: "production", pods: podset.ReplicaSets, production: true,
	doc: "Pods in protobuf, by TLS and HTTP/2, with lists compressed, as a kube-apiserver serves them.",
	entries: append(
		field("client-go", "client-go list", "controller-runtime", "tarn informers", "tarn kube", "tarn kube list"),
		entry{"tarn ctrlcache", "tarn ctrlcache", "controller-runtime"},
	),
}

// address is where a replay server is. Control and plain clients use URL; if the server
// was asked for TLS, Secure is the address for clients and CA its authority.
// For a real kube-apiserver only Kubeconfig is set.
type address struct {
	URL, Secure, CA string
	Kubeconfig      string
}

// config is how a contender reaches the server.
func (a address) config() (*rest.Config, error) {
	switch {
	case a.Kubeconfig != "":
		return clientcmd.BuildConfigFromFlags("", a.Kubeconfig)
	case a.Secure != "":
		return &rest.Config{Host: a.Secure, TLSClientConfig: rest.TLSClientConfig{CAData: []byte(a.CA)}}, nil
	default:
		return &rest.Config{Host: a.URL}, nil
	}
}

// serveSecure serves by TLS and HTTP/2 until the returned server is closed.
func serveSecure(handler http.Handler) (server *http.Server, url, ca string, err error) {
	certificate, ca, err := selfSigned()
	if err != nil {
		return nil, "", "", fmt.Errorf("make a certificate: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", "", err
	}
	server = &http.Server{Handler: handler, TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}}}
	go server.ServeTLS(listener, "", "")
	return server, "https://" + listener.Addr().String(), ca, nil
}

// selfSigned makes a certificate for this machine that is its own authority.
func selfSigned() (tls.Certificate, string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, "", err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(0, 1, 0),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, "", err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), nil
}
