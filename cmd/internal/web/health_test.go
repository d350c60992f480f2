package web

import (
	"context"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
)

func TestHealthy(t *testing.T) {
	r := newRig(t, rigOptions{})
	for _, path := range []string{"/healthz", "/readyz"} {
		// Probes come by address, without anything.
		if answer := r.ask(path, host("10.1.2.3:8276")); answer.Code != http.StatusOK || answer.Body.String() != "ok\n" {
			t.Errorf("%s: %d %s", path, answer.Code, answer.Body)
		}
	}
}

func TestStale(t *testing.T) {
	r := newRig(t, rigOptions{web: Options{FreshWithin: time.Nanosecond}})
	answer := r.ask("/readyz")
	if answer.Code != http.StatusServiceUnavailable || !strings.Contains(answer.Body.String(), "pods: last contact with the server") {
		t.Errorf("%d %s", answer.Code, answer.Body)
	}
	if answer := r.ask("/healthz"); answer.Code != http.StatusOK {
		t.Errorf("stale is not dead: %d", answer.Code)
	}
}

// A disk that does not follow makes the page unready, since SQL answers from it.
func TestReadyKnowsTheDisk(t *testing.T) {
	r := durable(t, rigOptions{web: Options{FreshWithin: time.Millisecond}})
	conn, err := sqlite3.Open(filepath.Join(r.mirror.DB().Dir(), "replica.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// A locked file has the same effect as a full disk.
	if err := conn.Exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	if err := r.server.Put(pod("default", "new")); err != nil {
		t.Fatal(err)
	}
	pods, _ := r.mirror.Table("pods")
	for begin := time.Now(); pods.Replica().Health().Disk.Lag < 2*time.Millisecond; time.Sleep(time.Millisecond) { // real: the server is not in a bubble
		if time.Since(begin) > 10*time.Second {
			t.Fatal("the disk never fell behind")
		}
	}
	answer := r.ask("/readyz")
	if answer.Code != http.StatusServiceUnavailable || !strings.Contains(answer.Body.String(), "pods: the copy on disk, which SQL reads, is too old: ") {
		t.Errorf("%d %s", answer.Code, answer.Body)
	}
	if err := conn.Exec("ROLLBACK"); err != nil {
		t.Fatal(err)
	}
}

// The reason why the mirror is not ready is shown to authenticated clients only. A
// table that cannot be read is a problem with advice.
func TestNotSynced(t *testing.T) {
	server := apiserver.New(apiserver.Options{})
	defer server.Close()
	ctx, cancel := context.WithCancel(context.Background())
	resource := mirror.Resource{GVR: schema.GroupVersionResource{Group: "none.example.com", Version: "v1", Resource: "things"}, Kind: "Thing", Verbs: []string{"list", "watch"}}
	failed := make(chan struct{}, 100)
	m, err := mirror.Start(ctx, server.Config(), []mirror.Resource{resource}, mirror.Options{
		Logger: slog.New(slog.DiscardHandler), OnError: func(string, error) { failed <- struct{}{} },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { cancel(); <-m.Done() }()
	<-failed
	site, err := New(m, Options{Token: testToken})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t, server, m, site}
	if answer := r.ask("/readyz"); answer.Code != http.StatusServiceUnavailable || strings.Contains(answer.Body.String(), "things") {
		t.Errorf("without a token: %d %s", answer.Code, answer.Body)
	}
	answer := r.ask("/readyz", header("Authorization", "Bearer "+testToken))
	if answer.Code != http.StatusServiceUnavailable || !strings.Contains(answer.Body.String(), "things.none.example.com: not synced") {
		t.Errorf("with the token: %d %s", answer.Code, answer.Body)
	}
	problems := r.ask("/api/problems", header("Authorization", "Bearer "+testToken)).Body.String()
	if !strings.Contains(problems, `"table":"things.none.example.com"`) || !strings.Contains(problems, `"advice":"`) {
		t.Errorf("problems: %s", problems)
	}

	cancel()
	<-m.Done()
	for _, path := range []string{"/healthz", "/readyz"} {
		if answer := r.ask(path); answer.Code != http.StatusServiceUnavailable {
			t.Errorf("%s after the end: %d", path, answer.Code)
		}
	}
}
