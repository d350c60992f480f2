package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/cmd/internal/term"
	"github.com/tarnproject/tarn/cmd/internal/term/termtest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// rig runs command lines against a server in the process.
type rig struct {
	t       *testing.T
	program string
	server  *apiserver.Server
	// screen is the terminal; nil for none.
	screen *termtest.Screen
	env    map[string]string
	// intercept may answer a request itself, or change the answer to it.
	intercept func(r *http.Request, next http.RoundTripper) (*http.Response, error)
}

func newRig(t *testing.T, objects ...runtime.Object) *rig {
	t.Helper()
	r := &rig{t: t, program: "tarn", server: apiserver.New(apiserver.Options{}), env: map[string]string{}}
	t.Cleanup(r.server.Close)
	r.put(objects...)
	return r
}

func (r *rig) put(objects ...runtime.Object) {
	r.t.Helper()
	if err := r.server.Put(objects...); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) delete(objects ...runtime.Object) {
	r.t.Helper()
	if err := r.server.Delete(objects...); err != nil {
		r.t.Fatal(err)
	}
}

// result is how a command ended.
type result struct {
	code     int
	out, err string
}

func (r *rig) app(out, errOut io.Writer) *app {
	return &app{
		program: r.program, in: strings.NewReader(""), out: out, errOut: errOut,
		getenv: func(name string) (string, bool) { value, ok := r.env[name]; return value, ok },
		terminal: func() (term.Terminal, bool) {
			if r.screen == nil {
				return nil, false
			}
			return r.screen, true
		},
		connect: func() (*rest.Config, string, error) {
			cfg := r.server.Config()
			cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return roundTripper(func(request *http.Request) (*http.Response, error) {
					if r.intercept == nil {
						return next.RoundTrip(request)
					}
					return r.intercept(request, next)
				})
			})
			return cfg, "default", nil
		},
	}
}

// run runs a command that comes to an end.
func (r *rig) run(args ...string) result {
	var out, errOut lockedBuffer
	code := r.app(&out, &errOut).main(r.t.Context(), args)
	return result{code, out.String(), errOut.String()}
}

// during runs a live command while something happens, and ends it by Ctrl-C. It
// is for virtual time.
func (r *rig) during(happen func(out *lockedBuffer), args ...string) result {
	ctx, interrupt := context.WithCancel(r.t.Context())
	defer interrupt()
	var out, errOut lockedBuffer
	ended := make(chan int)
	go func() { ended <- r.app(&out, &errOut).main(ctx, args) }()
	time.Sleep(100 * time.Millisecond) // so as not to meet what goes by the clock
	happen(&out)
	interrupt()
	return result{<-ended, out.String(), errOut.String()}
}

// golden compares a text with the file of a name.
func golden(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; write it with go test -update, and read it", err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s differs (-want +got); if that is meant, go test -update:\n%s", file, diff)
	}
}

// String shows a result as a shell would.
func (r result) String() string {
	text := r.out
	if r.err != "" {
		text += "-- stderr --\n" + r.err
	}
	if r.code != 0 {
		text += fmt.Sprintf("-- exit code %d --\n", r.code)
	}
	return text
}

func pod(name string, phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "web", Image: "nginx:1"}}},
		Status:     corev1.PodStatus{Phase: phase},
	}
}

func deployment(name string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

func secret(name, value string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Annotations: map[string]string{
			"kubectl.kubernetes.io/last-applied-configuration": `{"stringData":{"password":"` + value + `"}}`,
		}},
		Data: map[string][]byte{"password": []byte(value)},
	}
}

// refuse answers requests for a resource with an error of the server.
func refuse(resource string, code int, reason metav1.StatusReason, message string) func(*http.Request, http.RoundTripper) (*http.Response, error) {
	return func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if !strings.HasSuffix(r.URL.Path, "/"+resource) {
			return next.RoundTrip(r)
		}
		return statusResponse(r, code, reason, message), nil
	}
}

func statusResponse(r *http.Request, code int, reason metav1.StatusReason, message string) *http.Response {
	body, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	})
	if err != nil {
		panic(err)
	}
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Request: r, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
}
