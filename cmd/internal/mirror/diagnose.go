package mirror

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/render"
)

// diagnosis is the meaning of an error for users.
type diagnosis struct {
	// what is the same for all errors of a kind.
	what, detail string
	advice       func(Resource) string
	// cluster is the affected cluster if there are several, and count how often the error
	// occurred there.
	cluster string
	count   int
}

// complaint is a kind of error, with its text and what to do about it.
type complaint struct {
	is     func(error) bool
	what   string
	advice func(Resource) string
}

// complaints are tried in order: the most specific come first.
var complaints = []complaint{
	{apierrors.IsForbidden, "not allowed to list or watch", adviseRBAC},
	{apierrors.IsUnauthorized, "the credentials are not accepted",
		always("the token or certificate has probably expired: log in again, or renew it in the kubeconfig")},
	{contains("getting credentials"), "no credentials could be got",
		always("the kubeconfig names a program that gets them, and it fails: run it by hand to see why")},
	{apierrors.IsNotFound, "not served by the server", func(r Resource) string {
		return fmt.Sprintf("the server has no %s in version %s (any more): is the CRD installed (kubectl get crd), the aggregated API up (kubectl get apiservices)?", r.Name(), r.GVR.Version)
	}},
	{is(tarn.ErrRewound), "the server went back in time",
		always("its data was probably restored from a backup; the copy is read anew by itself, but controllers may need a look")},
	{because(tarn.ReasonExpired, tarn.ReasonTooNew), "the version to go on from is no longer known",
		always("the copy is read anew by itself; if it happens often, the connection is too slow for the changes, or the server's history too short")},
	{because(tarn.ReasonBusy), "the server asks to be left alone",
		always("it is overloaded, or limits this user (API priority and fairness); copy less, or give the user a better priority level")},
	{as[*tls.CertificateVerificationError], "the server's certificate is not trusted",
		always("the kubeconfig's certificate authority is not the server's, the certificate has expired, or something stands in between")},
	{as[tls.RecordHeaderError], "the answer is not encrypted as it should be",
		always("the address may be of something else, such as a proxy or a port for http: check it in the kubeconfig")},
	{as[*net.DNSError], "the server's name cannot be found",
		always("is the address in the kubeconfig right, the VPN up, DNS working?")},
	{because(tarn.ReasonRefused), "nobody answers at the server's address",
		always("is the server up, the address in the kubeconfig right, the tunnel open?")},
	{is(tarn.ErrSilent), "the watch fell silent",
		always("it is replaced by itself; if it happens often, something in between drops connections that are quiet for a while")},
	{is(tarn.ErrShortWatch), "watches end as soon as they begin",
		always("something in between, a proxy or a load balancer, does not let long answers pass")},
	{is(tarn.ErrNoInitialEnd), "the server does not come to the end of its initial events",
		always("after a few tries it is listed instead; if the server is loaded, that may be why")},
	{is(tarn.ErrNoList), "the answer is not a list",
		always("something in between may answer in the server's place, such as a login page: ask the same with kubectl get --raw")},
	{because(tarn.ReasonLost), "the connection broke off",
		always("it is made anew by itself; if it happens often, look at proxies and load balancers in between")},
	{isTimeout, "the server does not answer in time",
		always("is it reachable from here, and not overloaded? kubectl get --raw /readyz tells")},
	{as[*net.OpError], "the server cannot be reached",
		always("is the address in the kubeconfig right, the network or VPN up?")},
	{isInternal, "the server fails inside",
		always("its log tells why; for an aggregated API see kubectl get apiservices, for a CRD its conversion webhook")},
}

// longestDetail bounds how much of an error is shown and logged: servers, and anything in
// between, may answer with anything.
const longestDetail = 4000

func detailOf(err error) string {
	if err == nil {
		return ""
	}
	return render.CutNote(err.Error(), longestDetail)
}

// diagnose says what an error of a list or watch means.
func diagnose(err error) diagnosis {
	for _, c := range complaints {
		if c.is(err) {
			return diagnosis{what: c.what, detail: detailOf(err), advice: c.advice}
		}
	}
	return diagnosis{what: "cannot be listed or watched", detail: detailOf(err), advice: always("the detail tells what went wrong; it is tried again by itself")}
}

// diagnoseBad says what a bad object means.
func diagnoseBad(bad tarn.BadObject) diagnosis {
	d := diagnosis{
		what:   "there are objects that could not be taken",
		detail: "an object that could not even be named",
		advice: always("the copy shows their last good state, or nothing; see the object with kubectl get -o json, and correct or delete it"),
	}
	switch {
	case bad.Key != "":
		d.detail = render.CutNote(fmt.Sprintf("%s: %v", bad.Key, bad.Err), longestDetail)
	case bad.Err != nil:
		d.detail = detailOf(bad.Err)
	}
	return d
}

// adviseRBAC names what must be granted.
func adviseRBAC(r Resource) string {
	group := "in the core group"
	if r.GVR.Group != "" {
		group = "in the group " + r.GVR.Group
	}
	advice := fmt.Sprintf("grant the verbs list and watch on %s %s (kubectl create clusterrole read-%s --verb=list,watch --resource=%s, and bind it to the user)", r.GVR.Resource, group, r.GVR.Resource, r.Name())
	if r.Namespaced {
		advice += ", or copy only namespaces in which that is granted"
	}
	return advice
}

func always(advice string) func(Resource) string { return func(Resource) string { return advice } }

func is(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

func as[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func because(reasons ...tarn.Reason) func(error) bool {
	return func(err error) bool {
		for _, r := range reasons {
			if tarn.ReasonOf(err) == r {
				return true
			}
		}
		return false
	}
}

func contains(text string) func(error) bool {
	return func(err error) bool { return strings.Contains(err.Error(), text) }
}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, syscall.ETIMEDOUT) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err)
}

func isInternal(err error) bool {
	return tarn.ReasonOf(err) == tarn.ReasonInternal || apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsUnexpectedServerError(err)
}
