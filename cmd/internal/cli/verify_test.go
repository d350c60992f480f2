package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/cmd/internal/term"
	"github.com/tarnproject/tarn/verify"
)

// verifyRig runs commands on an embedded server, through a wire that may meddle
// with what is answered.
type verifyRig struct {
	server *apiserver.Server
	// intercept may answer a request itself, or change the answer to it.
	intercept func(r *http.Request, next http.RoundTripper) (*http.Response, error)
}

func newVerifyRig(t *testing.T) *verifyRig {
	t.Helper()
	rig := &verifyRig{server: apiserver.New(apiserver.Options{AnyNamespace: true})}
	t.Cleanup(rig.server.Close)
	for i := range 5 {
		rig.put(t, fmt.Sprint("c", i), "right")
	}
	return rig
}

func (rig *verifyRig) put(t *testing.T, name, text string) {
	t.Helper()
	if err := rig.server.Put(&corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Data:       map[string]string{"text": text},
	}, &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Data:       map[string][]byte{"password": []byte(text)},
	}); err != nil {
		t.Fatal(err)
	}
}

func (rig *verifyRig) run(ctx context.Context, args ...string) (code int, out, errOut string) {
	var o, e lockedBuffer
	a := &app{
		program: "tarn", in: strings.NewReader(""), out: &o, errOut: &e,
		getenv:   func(string) (string, bool) { return "", false },
		terminal: func() (term.Terminal, bool) { return nil, false },
		connect: func() (*rest.Config, string, error) {
			cfg := rig.server.Config()
			cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return roundTripper(func(r *http.Request) (*http.Response, error) {
					if rig.intercept == nil {
						return next.RoundTrip(r)
					}
					return rig.intercept(r, next)
				})
			})
			return cfg, "", nil
		},
	}
	code = a.main(ctx, args)
	return code, o.String(), e.String()
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// lockedBuffer is written by a command and its logger, and may be read meanwhile.
type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}

// lie makes the server's past another one than it was.
func lie(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	resp, err := next.RoundTrip(r)
	if err != nil || r.URL.Query().Get("resourceVersionMatch") != "Exact" {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	body = bytes.Replace(body, []byte(`"text":"right"`), []byte(`"text":"wrong"`), 1)
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return resp, err
}

func TestVerify(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rig := newVerifyRig(t)
		code, out, errOut := rig.run(t.Context(), "verify", "configmaps", "secrets", "-A", "--chunk-size=2")
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if code != exitOK || errOut != "" || len(lines) != 3 {
			t.Fatalf("%d: %s%s", code, out, errOut)
		}
		for i, want := range []string{"RESOURCE OBJECTS VERSION DIGEST VERDICT", "configmaps 5 " + rig.server.Version() + " * equal", "secrets 5 " + rig.server.Version() + " * equal"} {
			words := strings.Fields(lines[i])
			if i > 0 && len(words) == 5 {
				words[3] = "*"
			}
			if strings.Join(words, " ") != want {
				t.Errorf("%q, want %q", lines[i], want)
			}
		}
		if _, again, _ := rig.run(t.Context(), "verify", "secrets,configmaps", "-A"); !strings.Contains(again, strings.Fields(lines[1])[3]) {
			t.Errorf("another digest at the same version:\n%s%s", out, again)
		}
		code, out, _ = rig.run(t.Context(), "verify", "cm", "-o", "json")
		var v verified
		if err := json.Unmarshal([]byte(out), &v); err != nil || code != exitOK || v.Verdict != verify.Equal || len(v.Results) != 1 || v.Results[0].Objects != 5 {
			t.Errorf("%d: %s (%v)", code, out, err)
		}
	})
}

func TestVerifyDifferent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rig := newVerifyRig(t)
		rig.intercept = lie
		code, out, errOut := rig.run(t.Context(), "verify", "secrets", "configmaps", "-A")
		if code != exitDifferent || errOut != "" || !strings.Contains(out, "different") || !strings.Contains(out, "\nconfigmaps:\n  shop/c0 differs at version") || !strings.HasSuffix(out, ": data.text\n") {
			t.Errorf("%d: %s%s", code, out, errOut)
		}
		code, out, _ = rig.run(t.Context(), "verify", "configmaps", "-o=json")
		var v verified
		if err := json.Unmarshal([]byte(out), &v); err != nil || code != exitDifferent || v.Verdict != verify.Different || v.Results[0].Changed != 1 {
			t.Errorf("%d: %s (%v)", code, out, err)
		}
	})
}

// A comparison without a result is not reported as a difference.
func TestVerifyCannotTell(t *testing.T) {
	forbidden := func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if strings.HasSuffix(r.URL.Path, "/secrets") {
			r = r.Clone(r.Context())
			r.Method, r.URL.Path = http.MethodGet, "/apis/none/such" // not found
		}
		return next.RoundTrip(r)
	}
	for name, test := range map[string]struct {
		args        []string
		intercept   func(*http.Request, http.RoundTripper) (*http.Response, error)
		out, errOut string
	}{
		"one of two":       {[]string{"configmaps", "secrets", "-A"}, forbidden, "\nsecrets:\n  ", ""},
		"all":              {[]string{"secrets", "-A"}, forbidden, "secrets    0         -         -        unknown", ""},
		"no such resource": {[]string{"configmapz"}, nil, "", "did you mean configmaps"},
		"no server": {[]string{"configmaps"}, func(*http.Request, http.RoundTripper) (*http.Response, error) {
			return nil, io.ErrUnexpectedEOF
		}, "", "tarn: "},
		"no such format": {[]string{"configmaps", "-o", "xml"}, nil, "", `-o cannot be "xml"`},
		"no chunks":      {[]string{"configmaps", "--chunk-size=0"}, nil, "", "--chunk-size"},
		"nothing":        {nil, nil, "", "say which resources"},
		"no answer": {[]string{"configmaps", "--timeout=3s"}, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/configmaps") {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return next.RoundTrip(r)
		}, "--timeout allows more", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rig := newVerifyRig(t)
				rig.intercept = test.intercept
				began := time.Now()
				code, out, errOut := rig.run(t.Context(), append([]string{"verify"}, test.args...)...)
				if code != exitUnknown || !strings.Contains(out, test.out) || !strings.Contains(errOut, test.errOut) {
					t.Errorf("%d: %q %q", code, out, errOut)
				}
				if took := time.Since(began); took > 10*time.Second {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}

func TestVerifyInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rig := newVerifyRig(t)
		ctx, cancel := context.WithCancel(t.Context())
		rig.intercept = func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			if r.URL.Query().Get("resourceVersionMatch") == "Exact" {
				cancel()
			}
			return next.RoundTrip(r)
		}
		if code, out, errOut := rig.run(ctx, "verify", "configmaps"); code != exitInterrupted {
			t.Errorf("%d: %q %q", code, out, errOut)
		}
	})
}

// A mirror with --verify compares, and prints the result.
func TestMirrorVerifies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rig := newVerifyRig(t)
		rig.intercept = lie
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		code, out, errOut := rig.run(ctx, "mirror", "configmaps", "secrets", "-A", "--verify=1m", "--log-level=debug")
		if code != exitOK || !strings.Contains(errOut, "could not be repaired") || !strings.Contains(errOut, "the copy is as the server has it") ||
			!strings.Contains(out, " compared with the server: configmaps: different at version ") || !strings.Contains(out, "still not equal") {
			t.Errorf("%d: %s%s", code, out, errOut)
		}
		code, _, errOut = rig.run(t.Context(), "mirror", "configmaps", "--verify=1ms")
		if code != exitUsage || !strings.Contains(errOut, "--verify is a time of 10s or more") {
			t.Errorf("%d: %s", code, errOut)
		}
	})
}
