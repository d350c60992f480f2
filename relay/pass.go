package relay

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tarnproject/tarn/apiserver"
)

// Headers by which a client names another user to a server that trusts the client.
const (
	impersonateUser  = "Impersonate-User"
	impersonateGroup = "Impersonate-Group"
	impersonation    = "Impersonate-"
	// remoteUser begins the headers of an authenticating proxy, which a relay is not.
	remoteUser = "X-Remote-"
)

// pass lets the origin answer a request: with the credentials in its headers, or, for
// a caller with a certificate, in the caller's name.
//
// The private key of a certificate stays with the caller, so the relay cannot show it to
// the origin.
func (r *Relay) pass(w http.ResponseWriter, req *http.Request) {
	if err := checkTarget(req.URL); err != nil {
		r.counts.refused.add("path")
		apiserver.SendError(w, req, err)
		return
	}
	caller, certified, err := r.certificates.caller(req)
	switch {
	case err != nil:
		apiserver.SendError(w, req, r.refuse(err))
	case !certified:
		r.origin.ServeHTTP(w, req)
	case impersonates(req):
		r.refuseCertificate(w, req, caller, "a caller with a client certificate cannot impersonate others through this relay; leave out the impersonation, or send a bearer token")
	case !r.options.Impersonate:
		r.refuseCertificate(w, req, caller, "the origin must answer this, and the relay has no way to show your client certificate to it; send a bearer token, ask the origin directly, or have the relay started with --impersonate")
	default:
		r.origin.ServeHTTP(w, req.WithContext(context.WithValue(req.Context(), onBehalf{}, caller)))
	}
}

// checkTarget refuses a request that may lead to another cluster. An opaque target, as in "GET
// x:http://host/path", would be sent on as it is, without the path of the origin's address.
func checkTarget(u *url.URL) error {
	switch {
	case u.Opaque != "":
		return apierrors.NewBadRequest("the target of the request is not a path")
	case leavesRoot(u):
		return apierrors.NewBadRequest("the path leads out of the cluster; leave out the dots")
	}
	return nil
}

// leavesRoot reports whether a path leads above its root, with its escaped slashes as slashes or
// as parts of names: servers differ. The address of an origin may have a path, with other
// clusters beside it.
func leavesRoot(u *url.URL) bool {
	return goesAbove(u.Path, func(segment string) string { return segment }) ||
		goesAbove(u.EscapedPath(), func(segment string) string { name, _ := url.PathUnescape(segment); return name })
}

func goesAbove(path string, name func(segment string) string) bool {
	depth := 0
	for segment := range strings.SplitSeq(path, "/") {
		switch name(segment) {
		case "", ".":
		case "..":
			depth--
		default:
			depth++
		}
		if depth < 0 {
			return true
		}
	}
	return false
}

func (r *Relay) refuseCertificate(w http.ResponseWriter, req *http.Request, caller Caller, why string) {
	r.counts.refused.add("certificate")
	to, _ := apiserver.ParsePath(req.URL.Path)
	resource := schema.GroupResource{Group: to.Resource.Group, Resource: to.Resource.Resource}
	apiserver.SendError(w, req, apierrors.NewForbidden(resource, to.Name, fmt.Errorf("caller %q: %s", caller.Name, why)))
}

func impersonates(req *http.Request) bool { return hasHeader(req.Header, impersonation) }

func hasHeader(header http.Header, prefix string) bool {
	for name := range header {
		if hasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

func hasPrefix(name, prefix string) bool {
	return len(name) >= len(prefix) && strings.EqualFold(name[:len(prefix)], prefix)
}

// onBehalf is the key, in the context of a request, of the [Caller] in whose name the relay
// makes it.
type onBehalf struct{}

// impersonator makes requests with the relay's credentials in the name of a caller.
//
// It is the last to touch the headers, so nothing that a client sends, such as a Connection
// header that lists others to be removed, can change whose name a request is in. It makes
// no request without a name.
type impersonator struct{ next http.RoundTripper }

func (i impersonator) RoundTrip(req *http.Request) (*http.Response, error) {
	caller, ok := req.Context().Value(onBehalf{}).(Caller)
	if !ok || caller.Name == "" {
		return nil, errors.New("the request is in nobody's name")
	}
	req = req.Clone(req.Context())
	for name := range req.Header {
		if hasPrefix(name, impersonation) || hasPrefix(name, remoteUser) {
			delete(req.Header, name)
		}
	}
	req.Header.Set(impersonateUser, caller.Name)
	for _, group := range caller.Groups {
		if group != authenticated { // the origin adds it
			req.Header.Add(impersonateGroup, group)
		}
	}
	return i.next.RoundTrip(req)
}
