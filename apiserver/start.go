package apiserver

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Start makes a server that listens, on a free port of this machine only unless
// the options say otherwise.
func Start(options Options) (*Server, error) { return startWith(options, usualDeadlines) }

func startWith(options Options, limits deadlines) (*Server, error) {
	s := New(options)
	host, _, err := net.SplitHostPort(s.options.Address)
	if err != nil {
		return nil, fmt.Errorf("apiserver: the address %q is not host:port: %w", s.options.Address, err)
	}
	if !loopback(host) && (!s.options.TLS || len(s.options.Tokens) == 0) {
		return nil, fmt.Errorf("apiserver: everybody who reaches %s could change everything; set TLS and Tokens, or listen on 127.0.0.1", s.options.Address)
	}
	listener, err := net.Listen("tcp", s.options.Address)
	if err != nil {
		return nil, fmt.Errorf("apiserver: cannot listen: %w; choose another address, or port 0 for a free one", err)
	}
	s.listener = listener
	s.http = &http.Server{
		Handler:           withoutReadDeadline(s.guarded()),
		BaseContext:       func(net.Listener) context.Context { return s.ctx },
		ReadHeaderTimeout: limits.header, ReadTimeout: limits.body, IdleTimeout: limits.idle,
		ErrorLog: log.New(io.Discard, "", 0), // disconnected clients are not worth a log line
	}
	(&clients{most: s.options.ClientConnections}).watch(s.http)
	serve := s.http.Serve
	if s.options.TLS {
		certificate, authority, err := selfSigned(host)
		if err != nil {
			return nil, errors.Join(err, listener.Close())
		}
		s.authority = authority
		s.http.TLSConfig = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
		serve = func(l net.Listener) error { return s.http.ServeTLS(l, "", "") }
	}
	s.serving.Go(func() { _ = serve(listener) }) // ends with Close
	return s, nil
}

// URL is where a server listens that was made by [Start], empty otherwise.
func (s *Server) URL() string {
	if s.listener == nil {
		return ""
	}
	scheme := "http"
	if s.options.TLS {
		scheme = "https"
	}
	return scheme + "://" + s.listener.Addr().String()
}

// Kubeconfig is a file for kubectl, and for every other program that reads such
// files. It leads to a server that was made by [Start].
func (s *Server) Kubeconfig() ([]byte, error) {
	if s.listener == nil {
		return nil, errors.New("apiserver: the server does not listen, so that no other program can reach it; make it with Start")
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["tarn"] = &clientcmdapi.Cluster{Server: s.URL(), CertificateAuthorityData: s.authority}
	// Over TLS, kubectl without credentials prompts for a name and a password. A
	// server that accepts everyone takes any token.
	config.AuthInfos["tarn"] = &clientcmdapi.AuthInfo{Token: cmp.Or(s.token(), "everybody")}
	config.Contexts["tarn"] = &clientcmdapi.Context{Cluster: "tarn", AuthInfo: "tarn", Namespace: "default"}
	config.CurrentContext = "tarn"
	return clientcmd.Write(*config)
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// selfSigned makes a certificate that is its own authority.
func selfSigned(host string) (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: "tarn apiserver"},
		NotBefore:    now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA:        true, BasicConstraintsValid: true,
		DNSNames:    []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = append(template.IPAddresses, ip)
	} else {
		template.DNSNames = append(template.DNSNames, host)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
