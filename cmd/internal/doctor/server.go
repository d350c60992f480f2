package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiversion "k8s.io/apimachinery/pkg/version"
	authentication "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"
)

const (
	// clockWarning is how far the clocks may differ. Tokens and certificates tolerate a
	// minute or more, but displayed ages would be wrong by as much.
	clockWarning = 3 * time.Second
	// oldestServer is the oldest minor version of Kubernetes 1 whose answers the tests
	// replay; see docs/versions.md.
	oldestServer = 31
	// newerServers is how many minor versions a server may be ahead of client-go, by
	// the policy of Kubernetes for its clients.
	newerServers = 1
	// maxAnswer bounds how much of an answer is read.
	maxAnswer = 1 << 20
)

// Server is the API server under examination.
type Server struct {
	cfg  *rest.Config
	http *http.Client
	base *url.URL
}

// NewServer prepares requests; it sends none.
func NewServer(cfg *rest.Config) (*Server, error) {
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, err
	}
	base, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, err
	}
	return &Server{cfg: cfg, http: client, base: base}, nil
}

// get sends a request without the additions of client-go: the server's own answer matters,
// headers included. The caller closes the body.
func (s *Server) get(ctx context.Context, path string, query url.Values, header http.Header) (*http.Response, error) {
	u := s.base.JoinPath(path)
	u.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	if s.cfg.UserAgent != "" {
		request.Header.Set("User-Agent", s.cfg.UserAgent)
	}
	for name, values := range header {
		request.Header[name] = values
	}
	return s.http.Do(request)
}

// Identity checks which user the server sees, how far its clock is from ours, and which
// version it has. clientGo is the version of client-go in the program.
func (d *Doctor) Identity(ctx context.Context, s *Server, clientGo string, needs ...string) {
	d.Check(ctx, checkAuthentication, append(needs, checkTLS), s.whoAmI)
	var answer *versionAnswer
	var failed error
	d.Check(ctx, "clock", append(needs, checkTLS), func(ctx context.Context) Result {
		answer, failed = s.version(ctx)
		return answer.clock(failed)
	})
	d.Check(ctx, "version", append(needs, checkTLS), func(context.Context) Result { return answer.skew(failed, clientGo) })
}

func (s *Server) whoAmI(ctx context.Context) Result {
	client, err := authentication.NewForConfigAndClient(s.cfg, s.http)
	if err != nil {
		return fail("check the user in the kubeconfig", "the credentials cannot be used: %v", err)
	}
	me, err := client.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	switch {
	case apierrors.IsUnauthorized(err):
		return fail("log in again, or choose with --context, --user or --token", "the server does not accept the credentials (401)")
	case apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err):
		return ok("the server answers, but cannot say who is asking: it has no SelfSubjectReview")
	case apierrors.IsForbidden(err):
		return ok("the credentials are accepted; who they belong to may not be asked")
	case err != nil:
		return fail("check the network, --server and --context", "no answer: %v", cause(ctx, bare(err)))
	case me.Status.UserInfo.Username == "system:anonymous":
		return warn("give the context a user, or use --token", "the server takes us for system:anonymous: no credentials were accepted")
	}
	return ok("user %q", me.Status.UserInfo.Username)
}

// bare is an error without the address of the request, which is already known.
func bare(err error) error {
	if request := new(url.Error); errors.As(err, &request) {
		err = request.Err
	}
	if op := new(net.OpError); errors.As(err, &op) {
		err = op.Err
	}
	return err
}

// versionAnswer is the answer to a request for the server's version.
type versionAnswer struct {
	code int
	info apiversion.Info
	// date is the time of the server's clock, zero if the server did not send it.
	date time.Time
	// asked and answered are times of our clock.
	asked, answered time.Time
}

func (s *Server) version(ctx context.Context) (*versionAnswer, error) {
	a := &versionAnswer{asked: time.Now()}
	response, err := s.get(ctx, "/version", nil, nil)
	a.answered = time.Now()
	if err != nil {
		return a, cause(ctx, bare(err))
	}
	defer response.Body.Close()
	a.code = response.StatusCode
	if date := response.Header.Get("Date"); date != "" {
		a.date, _ = http.ParseTime(date) // a malformed date counts as none
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return a, cause(ctx, err)
	}
	if a.code == http.StatusOK {
		err = json.Unmarshal(body, &a.info)
	}
	return a, err
}

// clock compares the clocks. The header has whole seconds, so the true time lies
// within the second after it.
func (a *versionAnswer) clock(err error) Result {
	switch {
	case err != nil && a.date.IsZero():
		return skip("no answer: %v", err)
	case a.date.IsZero():
		return skip("the server does not tell its time")
	}
	ours := a.asked.Add(a.answered.Sub(a.asked) / 2)
	off := a.date.Add(time.Second / 2).Sub(ours)
	what := fmt.Sprintf("the server's is %s ahead of ours", off.Abs().Round(time.Second))
	if off < 0 {
		what = fmt.Sprintf("the server's is %s behind ours", off.Abs().Round(time.Second))
	}
	if off.Abs() <= clockWarning {
		return ok("differs by less than %s", (clockWarning + time.Second).Round(time.Second))
	}
	return warn("synchronize both clocks by NTP: ages would be wrong, and tokens and certificates may be refused", "%s", what)
}

var minorVersion = regexp.MustCompile(`^v?(\d+)\.(\d+)\.`)

// minor parses the minor version in v1.36.3 or v0.37.2.
func minor(version string) (major, minor int, ok bool) {
	parts := minorVersion.FindStringSubmatch(version)
	if parts == nil {
		return 0, 0, false
	}
	major, err1 := strconv.Atoi(parts[1])
	minor, err2 := strconv.Atoi(parts[2])
	return major, minor, err1 == nil && err2 == nil
}

func (a *versionAnswer) skew(err error, clientGo string) Result {
	switch {
	case err != nil:
		return fail("is it the API server of a cluster? check --server and --context", "no version: %v", err)
	case a.code == http.StatusUnauthorized || a.code == http.StatusForbidden:
		return skip("the server does not tell its version to this user (%d)", a.code)
	case a.code != http.StatusOK:
		return fail("is it the API server of a cluster? check --server and --context", "the server answers %d to a request for its version", a.code)
	}
	found := fmt.Sprintf("server %s, client-go %s", a.info.GitVersion, clientGo)
	major, server, known := minor(a.info.GitVersion)
	_, client, built := minor(clientGo)
	switch {
	case !known || major != 1:
		return warn("is it the API server of a cluster? check --server and --context", "the server's version is %q", strings.TrimSpace(a.info.GitVersion))
	case server < oldestServer:
		return warn("update the server, or test well: docs/versions.md says what was tested", "%s: servers before 1.%d are not tested", found, oldestServer)
	case !built:
		return ok("server %s, client-go of an unknown version", a.info.GitVersion)
	case server > client+newerServers:
		return warn("update this program", "%s: the server is more than one minor version ahead", found)
	}
	return ok("%s: supported", found)
}
