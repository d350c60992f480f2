//go:build !tarn_client_go_0_36

package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
)

// shardServer is a server whose answers to shard selectors can be changed.
type shardServer struct {
	*apiserver.Server
	// treat changes a request; it returns an answer to give instead.
	treat func(r *http.Request) *http.Response
	asked atomic.Int64
	lists atomic.Int64
}

func newShardServer(t *testing.T, objects int) *shardServer {
	t.Helper()
	s := &shardServer{Server: apiserver.New(apiserver.Options{AnyNamespace: true})}
	t.Cleanup(s.Close)
	for i := range objects {
		s.put(t, i, "first")
	}
	return s
}

func (s *shardServer) put(t *testing.T, i int, value string) {
	t.Helper()
	if err := s.Put(shardObject(i, value)); err != nil {
		t.Fatal(err)
	}
}

func shardObject(i int, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprint("n", i%10), Name: fmt.Sprint("c", i)}, Data: map[string]string{"value": value}}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (s *shardServer) config() *rest.Config {
	cfg := s.Config()
	inner := cfg.Transport
	cfg.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.URL.Query().Get("watch") == "" {
			s.lists.Add(1)
		}
		if r.URL.Query().Has(shardParameter) {
			s.asked.Add(1)
			if s.treat != nil {
				r = r.Clone(r.Context())
				if resp := s.treat(r); resp != nil {
					return resp, nil
				}
			}
		}
		return inner.RoundTrip(r)
	})
	return cfg
}

// ignoresSelector is a server that does not know the parameter.
func ignoresSelector(r *http.Request) *http.Response {
	q := r.URL.Query()
	q.Del(shardParameter)
	r.URL.RawQuery = q.Encode()
	return nil
}

// refusesSelector is a server that does not allow it.
func refusesSelector(r *http.Request) *http.Response {
	const body = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"BadRequest","message":"no such parameter","code":400}`
	return &http.Response{StatusCode: 400, Status: "400 Bad Request", Request: r, Header: http.Header{"Content-Type": {jsonType}}, Body: readCloser{strings.NewReader(body)}}
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }

// Four shards have every object once, whatever the server does with the selector, in every
// format, as a stream, as pages and as a list, and follow changes.
func TestShardsOfAllServers(t *testing.T) {
	for _, c := range []struct {
		name     string
		treat    func(*http.Request) *http.Response
		byServer bool
	}{{"serves", nil, true}, {"ignores", ignoresSelector, false}, {"refuses", refusesSelector, false}} {
		for _, format := range []string{protobufType, jsonType} {
			for _, way := range []Option{Options(), WatchList(false), Options(WatchList(false), PageSize(7))} {
				synctest.Test(t, func(t *testing.T) { testShards(t, c.treat, c.byServer, format, way) })
			}
		}
	}
}

func testShards(t *testing.T, treat func(*http.Request) *http.Response, byServer bool, format string, way Option) {
	server := newShardServer(t, 60)
	server.treat = treat
	cfg := server.config()
	cfg.ContentType, cfg.AcceptContentTypes = format, format
	ctx, cancel := context.WithCancel(t.Context())
	var shards []*tarn.Replica[*corev1.ConfigMap]
	for i := range 4 {
		shard, err := Reflect[*corev1.ConfigMap](ctx, cfg, Shard(i, 4), way)
		if err != nil {
			t.Fatal(err)
		}
		shards = append(shards, shard)
		if err := shard.WaitSynced(ctx); err != nil {
			t.Fatal(err)
		}
		if n := shard.Len(); n == 0 || n > 40 {
			t.Errorf("shard %d has %d of 60", i, n)
		}
	}
	for i := range 80 {
		server.put(t, i, "second")
	}
	if err := server.Delete(shardObject(0, "")); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	synctest.Wait()
	seen := map[tarn.Key]int{}
	for i, shard := range shards {
		for key, object := range shard.All() {
			seen[key]++
			if object.Data["value"] != "second" {
				t.Errorf("%s in shard %d is %q", key, i, object.Data)
			}
		}
		h := shard.Health()
		if h.Shard == nil || h.Shard.ByServer != byServer || byServer != (h.Shard.Dropped == 0) {
			t.Errorf("shard %d: %+v", i, h.Shard)
		}
		if !strings.Contains(h.String(), "25.0 % of all by uid") {
			t.Error(h)
		}
	}
	if len(seen) != 79 {
		t.Errorf("the shards have %d of 79 objects", len(seen))
	}
	for key, n := range seen {
		if n != 1 {
			t.Errorf("%d shards have %s", n, key)
		}
	}
	cancel()
	for _, shard := range shards {
		<-shard.Done()
	}
}

// A server that refuses the selector is asked with it once for all copies of a client.
func TestRefusedShardIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newShardServer(t, 10)
		server.treat = refusesSelector
		client, err := NewClient(server.config())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for i := range 4 {
			shard, err := Reflect[*corev1.ConfigMap](ctx, nil, WithClient(client), Shard(i, 4))
			if err != nil {
				t.Fatal(err)
			}
			if err := shard.WaitSynced(ctx); err != nil {
				t.Fatal(err)
			}
			defer func() { <-shard.Done() }()
		}
		if n := server.asked.Load(); n != 1 {
			t.Errorf("the server was asked %d times", n)
		}
		cancel()
	})
}

// Events of other shards move the version on, without a bookmark of the server.
func TestForeignEventsMoveTheVersion(t *testing.T) {
	for _, format := range []string{protobufType, jsonType} {
		synctest.Test(t, func(t *testing.T) {
			server := newShardServer(t, 20)
			server.treat = ignoresSelector
			cfg := server.config()
			cfg.ContentType, cfg.AcceptContentTypes = format, format
			ctx, cancel := context.WithCancel(t.Context())
			shard, err := Reflect[*corev1.ConfigMap](ctx, cfg, Shard(1, 4))
			if err != nil {
				t.Fatal(err)
			}
			if err := shard.WaitSynced(ctx); err != nil {
				t.Fatal(err)
			}
			before, events := shard.Version(), shard.Health().Events
			foreign := -1
			for i := range 20 {
				if _, own := shard.Get(tarn.Key(fmt.Sprintf("n%d/c%d", i%10, i))); !own {
					foreign = i
				}
			}
			for range 100 {
				server.put(t, foreign, fmt.Sprint(time.Now()))
				time.Sleep(10 * time.Millisecond)
			}
			synctest.Wait()
			after := shard.Version()
			if c, ok := after.Compare(before); !ok || c <= 0 {
				t.Errorf("the version was %s and is %s", before, after)
			}
			if n := shard.Health().Events - events; n > 3 {
				t.Errorf("%d events of another shard reached the copy in a second", n)
			}
			cancel()
			<-shard.Done()
		})
	}
}

func TestShardOptionsThatCannotBe(t *testing.T) {
	server := newShardServer(t, 0)
	if _, err := Reflect[*corev1.ConfigMap](t.Context(), server.Config(), Shard(4, 4)); err == nil || !strings.Contains(err.Error(), "no shard 4 of 4") {
		t.Error(err)
	}
	all, err := ShardOf(ShardByUID, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	sink := Sink(func(Origin) (tarn.Sink[*corev1.ConfigMap], error) { return nil, errors.New("opened") })
	if _, err := Reflect[*corev1.ConfigMap](t.Context(), server.Config(), Sharded(NewSharding(all)), sink); !errors.Is(err, errKeptShard) {
		t.Error(err)
	}
	if _, err := Reflect[*corev1.ConfigMap](t.Context(), server.Config(), Shard(0, 2), sink); err == nil || err.Error() != "opened" {
		t.Error(err)
	}
	byNamespace, err := ShardOf(ShardByNamespace, 0, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := NewSharding(all).Set(byNamespace); err == nil {
		t.Error("the key of a sharding changed")
	}
	fixed, err := FixedShard(0, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := fixed.Set(all); err == nil {
		t.Error("a fixed shard changed")
	}
}

// A server that selects in lists and not in watches is believed only until a watch shows it,
// and not again with the next watch.
func TestServerThatSelectsListsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newShardServer(t, 60)
		server.treat = func(r *http.Request) *http.Response {
			if r.URL.Query().Get("watch") != "" {
				return ignoresSelector(r)
			}
			return nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		shard, err := Reflect[*corev1.ConfigMap](ctx, server.config(), Shard(1, 4), WatchList(false))
		if err != nil {
			t.Fatal(err)
		}
		if err := shard.WaitSynced(ctx); err != nil {
			t.Fatal(err)
		}
		for i := range 60 {
			server.put(t, i, "second")
		}
		for range 30 { // in which watches end and are opened again
			time.Sleep(time.Minute)
			synctest.Wait()
			if h := shard.Health().Shard; h.ByServer || h.Dropped == 0 {
				t.Fatalf("%+v", h)
			}
		}
		cancel()
		<-shard.Done()
	})
}

// A server that selects and does not say so is not believed, and its answers are as good.
func TestServerThatSelectsSilently(t *testing.T) {
	for _, streams := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			server := newShardServer(t, 60)
			cfg := server.config()
			cfg.ContentType, cfg.AcceptContentTypes = jsonType, jsonType
			inner := cfg.Transport
			cfg.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
				resp, err := inner.RoundTrip(r)
				if err != nil || r.URL.Query().Get("watch") != "" {
					return resp, err
				}
				raw, err := io.ReadAll(resp.Body)
				if err != nil {
					return nil, err
				}
				raw = bytes.ReplaceAll(raw, []byte(`"shardInfo"`), []byte(`"otherInfo"`))
				resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
				return resp, nil
			})
			ctx, cancel := context.WithCancel(t.Context())
			shard, err := Reflect[*corev1.ConfigMap](ctx, cfg, Shard(1, 4), WatchList(streams))
			if err != nil {
				t.Fatal(err)
			}
			if err := shard.WaitSynced(ctx); err != nil {
				t.Fatal(err)
			}
			if h := shard.Health().Shard; h.ByServer || h.Dropped != 0 || shard.Len() == 0 || server.asked.Load() == 0 {
				t.Errorf("%+v, %d objects", h, shard.Len())
			}
			cancel()
			<-shard.Done()
		})
	}
}
