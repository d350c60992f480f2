package demo

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestShortWatches(t *testing.T) {
	for _, test := range []struct{ asked, want string }{
		{"/api/v1/pods?limit=1", ""},
		{"/api/v1/pods?watch=false&timeoutSeconds=400", "400"},
		{"/api/v1/pods?watch=true&timeoutSeconds=400", "30"},
		{"/api/v1/pods?watch=true", "30"},
		{"/api/v1/pods?sendInitialEvents=true&timeoutSeconds=400&watch=true", "20"},
	} {
		request := httptest.NewRequest(http.MethodGet, test.asked, nil)
		before := request.URL.String()
		var got string
		inner := roundTrip(func(r *http.Request) (*http.Response, error) {
			got = r.URL.Query().Get("timeoutSeconds")
			return nil, http.ErrServerClosed
		})
		if _, err := (shortWatches{inner: inner, initial: 20 * time.Second}).RoundTrip(request); err != http.ErrServerClosed {
			t.Errorf("%s: %v", test.asked, err)
		}
		if got != test.want {
			t.Errorf("%s lasts %q seconds, want %q", test.asked, got, test.want)
		}
		if request.URL.String() != before {
			t.Errorf("%s was changed, although it belongs to the caller", test.asked)
		}
	}
}

func TestFaultyConnectionNeedsTLS(t *testing.T) {
	if _, err := NewFaultyConnection(1).Config(&rest.Config{Host: "http://127.0.0.1:1"}, time.Second); err == nil || !strings.Contains(err.Error(), "TLS") {
		t.Errorf("without TLS: %v", err)
	}
}

func TestComparison(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		server, other := apiserver.New(apiserver.Options{}), apiserver.New(apiserver.Options{})
		defer other.Close()
		defer server.Close()
		target, err := On(server)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Build(ctx, target, Config{Pods: 5, Seed: 1}); err != nil {
			t.Fatal(err)
		}
		catalog, err := mirror.Discover(ctx, server.Config())
		if err != nil {
			t.Fatal(err)
		}
		var resources []mirror.Resource
		for _, name := range []string{"pods", "secrets"} {
			r, err := catalog.Find(name)
			if err != nil {
				t.Fatal(err)
			}
			resources = append(resources, r)
		}
		m, err := mirror.Start(ctx, server.Config(), resources, mirror.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { cancel(); <-m.Done() }()

		compare := func(with *apiserver.Server) Finding {
			c, err := NewComparison(m, with.Config())
			if err != nil {
				t.Fatal(err)
			}
			return c.Compare(ctx)
		}
		if f := compare(server); f.Equal != 2 || f.Tables != 2 || f.Objects != 5+4 {
			t.Errorf("with its own server: %+v", f)
		}
		if f := compare(other); f.Equal != 0 || len(f.Different) != 2 {
			t.Errorf("with an empty server: %+v", f)
		}
	})
}

func TestOpenFails(t *testing.T) {
	if _, err := Open(t.Context(), SessionOptions{Address: "nowhere"}); err == nil {
		t.Error("it listens nowhere")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ctx, SessionOptions{Config: Config{Pods: 10}}); err == nil {
		t.Error("it ignores its context")
	}
}
