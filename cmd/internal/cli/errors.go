package cli

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"syscall"

	"github.com/tarnproject/tarn/cmd/internal/term"
	"github.com/tarnproject/tarn/internal/render"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// usageError is an invalid command line.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error {
	return &usageError{text: fmt.Sprintf(format, args...)}
}

// exitError ends the program with a code of its own. Without an error, nothing more is
// printed.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// longestError bounds how much of an error is shown, since a server may answer with anything.
const longestError = 4000

// oneLine reduces an error to one line, and removes terminal control characters.
func oneLine(err error) string {
	text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "mirror: "), "sqlite: ")
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return term.Clean(render.CutNote(strings.Join(lines, " "), longestError))
}

// explained is an error that says what to do.
type explained struct{ error }

func (e explained) Unwrap() error { return e.error }

// explain adds what to do to errors of the connection and of the server that do not say it
// themselves.
func (a *app) explain(err error) error {
	var request *url.Error
	switch {
	case err == nil || errors.As(err, new(explained)):
		return err
	case apierrors.IsUnauthorized(err):
		err = fmt.Errorf("the server does not accept the credentials: %w; log in again, or choose with --context, --user or --token", unprefixed{err})
	case apierrors.IsForbidden(err) && !strings.Contains(err.Error(), "grant list and watch"):
		err = fmt.Errorf("%w; name a namespace that you may read with -n, or have list and watch granted", err)
	case apierrors.IsBadRequest(err) && (strings.Contains(err.Error(), "field label not supported") || strings.Contains(err.Error(), "known field selector")):
		err = fmt.Errorf("--field-selector: %w; servers select by few fields, %q by all", err, a.program+" query --where")
	case errors.As(err, &request):
		err = explainRequest(request)
	case apierrors.IsNotFound(err) && strings.Contains(err.Error(), "what it offers"):
		err = fmt.Errorf("%w; is it the API server of a cluster? check --server and --context", err)
	case strings.Contains(err.Error(), "root certificates"):
		err = fmt.Errorf("%w; check --certificate-authority and the cluster in the kubeconfig", err)
	}
	return explained{err}
}

// unprefixed is an error without the name of the package that returned it.
type unprefixed struct{ error }

func (e unprefixed) Error() string { return strings.TrimPrefix(e.error.Error(), "mirror: ") }
func (e unprefixed) Unwrap() error { return e.error }

// explainRequest explains why a request got no answer.
func explainRequest(request *url.Error) error {
	advice := "check the network, --server and --context"
	switch {
	case isCertificate(request):
		advice = "check the cluster's certificate-authority in the kubeconfig, or --certificate-authority"
	case errors.Is(request, syscall.ECONNREFUSED):
		advice = "is it running? check --server and --context"
	case request.Timeout():
		advice = "check the network and --server, or allow more with --request-timeout"
	}
	return fmt.Errorf("%s; %s", unreachable(request), advice)
}

// unreachable says that a request got no answer. It leaves out the request, which does not
// matter then.
func unreachable(request *url.Error) string {
	server := request.URL
	if u, err := url.Parse(server); err == nil {
		server = u.Scheme + "://" + u.Host
	}
	cause := request.Err
	if op := new(net.OpError); errors.As(cause, &op) {
		cause = op.Err
	}
	return term.Clean(fmt.Sprintf("cannot reach the server at %s: %v", server, cause))
}

// brief is an error in few enough words for a line of a view.
func brief(err error) string {
	var request *url.Error
	if errors.As(err, &request) {
		return unreachable(request)
	}
	return oneLine(err)
}

func isCertificate(err error) bool {
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	return errors.As(err, &authority) || errors.As(err, &host) || errors.As(err, &invalid)
}
