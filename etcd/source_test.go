package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/etcd"
	"github.com/tarnproject/tarn/faults"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// A replica equals the prefix after puts, deletes, transactions, compactions, deletes of
// very many keys at once and leases that end, while its source fails in all the ways that
// package faults knows.
func TestConverges(t *testing.T) {
	s := startServer(t)
	client := s.connect()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			plan := faults.Random(seed)
			if seed == 0 {
				plan.End() // one without faults
			}
			r := follow(t, faults.Source(newSource(t, client), plan, faults.SourceOptions[*etcd.Entry[string]]{}))
			random := rand.New(rand.NewPCG(seed, 1))
			for range 300 {
				write(t, client, random)
			}
			plan.End()
			equals(t, client, r)
		})
	}
}

// write does something to the prefix.
func write(t *testing.T, client *clientv3.Client, random *rand.Rand) {
	t.Helper()
	ctx := t.Context()
	key := fmt.Sprint(prefix, random.IntN(20))
	var err error
	switch n := random.IntN(100); {
	case n < 50:
		_, err = client.Put(ctx, key, fmt.Sprint(random.IntN(1000)))
	case n < 65:
		_, err = client.Delete(ctx, key)
	case n < 80:
		other := fmt.Sprint(prefix, "other-", random.IntN(20))
		_, err = client.Txn(ctx).Then(clientv3.OpPut(key, "together"), clientv3.OpPut(other, "together"), clientv3.OpDelete(prefix+"third")).Commit()
	case n < 88:
		_, err = client.Put(ctx, "/elsewhere/"+key, "not ours")
	case n < 92:
		lease, e := client.Grant(ctx, 1)
		if err = e; err == nil {
			_, err = client.Put(ctx, key, "for a second", clientv3.WithLease(lease.ID))
		}
	case n < 96:
		now, e := client.Get(ctx, prefix+"0")
		if err = e; err == nil {
			_, err = client.Compact(ctx, now.Header.Revision)
		}
	default:
		_, err = client.Delete(ctx, prefix, clientv3.WithPrefix())
	}
	if err != nil && !strings.Contains(err.Error(), "compacted") {
		t.Fatal(err)
	}
}

// Pages of a list show one revision, whatever is written between them, and fail with
// ReasonExpired once that revision is compacted.
func TestPages(t *testing.T) {
	client := startServer(t).connect()
	for i := range 25 {
		put(t, client, fmt.Sprintf("%02d", i), "old")
	}
	source := newSource(t, client)
	page := pageOf(t)(source.List(t.Context(), tarn.ListQuery{AtLeast: tarn.Latest, Limit: 10}))
	first, seen := page.Version, len(page.Items)
	for page.Continue != "" {
		put(t, client, "99", "new")
		put(t, client, "15", "new")
		page = pageOf(t)(source.List(t.Context(), tarn.ListQuery{AtLeast: tarn.Latest, Limit: 10, Continue: page.Continue}))
		for _, e := range page.Items {
			if e.Value != "old" {
				t.Errorf("%s is of a later revision", e.Key)
			}
		}
		if page.Version != first {
			t.Errorf("a page is of revision %s, the first one of %s", page.Version, first)
		}
		seen += len(page.Items)
	}
	if seen != 25 {
		t.Errorf("%d keys are listed, not 25", seen)
	}
	page = pageOf(t)(source.List(t.Context(), tarn.ListQuery{AtLeast: tarn.Latest, Limit: 10}))
	put(t, client, "1", "newer")
	response, err := client.Get(t.Context(), prefix)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Compact(t.Context(), response.Header.Revision); err != nil {
		t.Fatal(err)
	}
	if _, err := source.List(t.Context(), tarn.ListQuery{AtLeast: tarn.Latest, Limit: 10, Continue: page.Continue}); tarn.ReasonOf(err) != tarn.ReasonExpired {
		t.Errorf("a page of a compacted revision: %v", err)
	}
	if _, err := source.List(t.Context(), tarn.ListQuery{AtLeast: "1", Exact: true}); tarn.ReasonOf(err) != tarn.ReasonExpired {
		t.Errorf("a compacted revision: %v", err)
	}
	if _, err := source.List(t.Context(), tarn.ListQuery{AtLeast: "1000000"}); tarn.ReasonOf(err) != tarn.ReasonTooNew {
		t.Errorf("a revision of the future: %v", err)
	}
	one := pageOf(t)(source.List(t.Context(), tarn.ListQuery{AtLeast: tarn.Latest, Key: "15"}))
	if len(one.Items) != 1 || one.Items[0].Value != "new" {
		t.Errorf("one key: %v", one.Items)
	}
}

// A stream tells an old revision, a timeout, and a transaction that does not fit.
func TestStreams(t *testing.T) {
	client := startServer(t).connect()
	put(t, client, "a", "1")
	source := newSource(t, client)
	from := pageOf(t)(source.List(t.Context(), tarn.ListQuery{AtLeast: tarn.Latest})).Version

	stream, err := source.Watch(t.Context(), tarn.WatchQuery{From: from})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	var ops []clientv3.Op
	for i := range 5 {
		ops = append(ops, clientv3.OpPut(fmt.Sprint(prefix, i), "1"))
	}
	if _, err := client.Txn(t.Context()).Then(ops...).Commit(); err != nil {
		t.Fatal(err)
	}
	put(t, client, "a", "2")
	buf := make([]tarn.Event[*etcd.Entry[string]], 6)
	if n, err := stream.Next(t.Context(), buf); err != nil || n < 5 {
		t.Errorf("%d events of a transaction of 5: %v", n, err)
	}
	short, err := source.Watch(t.Context(), tarn.WatchQuery{From: from})
	if err != nil {
		t.Fatal(err)
	}
	defer short.Close()
	if n, err := short.Next(t.Context(), buf[:4]); tarn.ReasonOf(err) != tarn.ReasonExpired {
		t.Errorf("%d events of a transaction of 5 in a buffer of 4: %v", n, err)
	}
	timed, err := source.Watch(t.Context(), tarn.WatchQuery{From: pageOf(t)(source.List(t.Context(), tarn.ListQuery{AtLeast: tarn.Latest})).Version, Timeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer timed.Close()
	if _, err := timed.Next(t.Context(), buf); err == nil || err.Error() != "EOF" {
		t.Errorf("a watch that is over: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := stream.Next(ended, buf); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("Next with an ended context: %v", err)
	}

	response, err := client.Get(t.Context(), prefix)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Compact(t.Context(), response.Header.Revision); err != nil {
		t.Fatal(err)
	}
	old, err := source.Watch(t.Context(), tarn.WatchQuery{From: from})
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	if _, err := old.Next(t.Context(), buf); tarn.ReasonOf(err) != tarn.ReasonExpired {
		t.Errorf("a watch from a compacted revision: %v", err)
	}
	if _, err := source.Watch(t.Context(), tarn.WatchQuery{Initial: true}); tarn.ReasonOf(err) != tarn.ReasonNoWatchList {
		t.Errorf("a watch with initial events: %v", err)
	}
	for _, wrong := range []tarn.ListQuery{{AtLeast: "x"}, {AtLeast: tarn.Latest, Continue: "x"}} {
		if _, err := source.List(t.Context(), wrong); err == nil {
			t.Errorf("%+v is answered", wrong)
		}
	}
	if _, err := etcd.NewSource(client, "", etcd.Text); err == nil {
		t.Error("a source without a prefix is made")
	}
}

// A value that cannot be decoded is one bad object; its delete counts.
func TestBadValues(t *testing.T) {
	client := startServer(t).connect()
	put(t, client, "good", "1")
	put(t, client, "bad", "bad")
	source, err := etcd.NewSource(client, prefix, func(data []byte) (string, error) {
		if string(data) == "bad" {
			return "", errors.New("it is bad")
		}
		return string(data), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	r := follow(t, source)
	h := r.Health()
	if r.Len() != 1 || h.BadCount != 1 || h.Bad[0].Key != "bad" {
		t.Errorf("%d objects; %s, bad: %v", r.Len(), h, h.Bad)
	}
	put(t, client, "good", "bad")
	wait(t, func() bool { return r.Health().BadCount == 2 })
	if e, ok := r.Get("good"); !ok || e.Value != "1" {
		t.Errorf("the last good value is gone: %v", e)
	}
	if _, err := client.Delete(t.Context(), prefix, clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	wait(t, func() bool { return r.Len() == 0 && r.Health().BadCount == 0 })
}

// A key that is the prefix itself is not below it: no entry, no bad object, no event.
func TestKeyThatIsThePrefix(t *testing.T) {
	client := startServer(t).connect()
	put(t, client, "", "a directory")
	put(t, client, "a", "1")
	r := follow(t, newSource(t, client))
	put(t, client, "", "written again")
	put(t, client, "b", "1")
	wait(t, func() bool { return r.Len() == 2 })
	if h := r.Health(); h.BadCount != 0 {
		t.Errorf("%s", h)
	}
}

// A cluster that was put back to an older state is noticed, and its state read.
func TestRewind(t *testing.T) {
	s := startServer(t)
	client := s.connect()
	put(t, client, "kept", "1")
	restore := s.backup()
	source := newSource(t, client)
	source.CheckEvery(500 * time.Millisecond)
	r := follow(t, source)
	for i := range 10 {
		put(t, client, fmt.Sprint("lost-", i), "1")
	}
	equals(t, client, r)
	restore()
	equals(t, client, r)
	if h := r.Health(); h.Rewinds != 1 {
		t.Errorf("the rewind is not counted: %s", h)
	}
}

// A quiet prefix is known to be quiet: the copy follows the revisions of other keys. A
// server that cannot be reached shows in Health.
func TestFreshness(t *testing.T) {
	s := startServer(t)
	client := s.connect()
	put(t, client, "a", "1")
	source := newSource(t, client)
	source.CheckEvery(500 * time.Millisecond)
	r := follow(t, source)
	other, err := client.Put(t.Context(), "/elsewhere", "1")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.WaitFor(t.Context(), tarn.Version(fmt.Sprint(other.Header.Revision))); err != nil {
		t.Error(err)
	}
	s.stop()
	wait(t, func() bool { return r.Health().Err != nil })
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	wait(t, func() bool { return r.Health().Err == nil })
	if h := r.Health(); len(h.Lists) != 1 {
		t.Errorf("an outage of the server cost lists: %v", h.Lists)
	}
}

// A server that is unreachable for a while is followed again from the same revision.
func TestRestartedServer(t *testing.T) {
	s := startServer(t)
	client := s.connect()
	put(t, client, "a", "1")
	r := follow(t, newSource(t, client))
	s.restart()
	put(t, client, "a", "2")
	equals(t, client, r)
	if h := r.Health(); h.Lists["start"] != 1 || len(h.Lists) != 1 {
		t.Errorf("a restart of the server cost lists: %v", h.Lists)
	}
}

// The client's credentials are the source's: a user who may not read the prefix is told so.
func TestAuthentication(t *testing.T) {
	s := startServer(t)
	root, reader := s.secure()
	put(t, root, "a", "1")
	r := follow(t, newSource(t, reader))
	put(t, root, "a", "2")
	equals(t, root, r)
	elsewhere, err := etcd.NewSource(reader, "/elsewhere/", etcd.Text)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := elsewhere.List(t.Context(), tarn.ListQuery{AtLeast: tarn.Latest}); err == nil || !strings.Contains(err.Error(), "etcd: list /elsewhere/: etcdserver: permission denied") {
		t.Errorf("a prefix that may not be read: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }

func put(t *testing.T, client *clientv3.Client, key, value string) {
	t.Helper()
	if _, err := client.Put(t.Context(), prefix+key, value); err != nil {
		t.Fatal(err)
	}
}

func pageOf(t *testing.T) func(tarn.Page[*etcd.Entry[string]], error) tarn.Page[*etcd.Entry[string]] {
	return func(page tarn.Page[*etcd.Entry[string]], err error) tarn.Page[*etcd.Entry[string]] {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return page
	}
}

func wait(t *testing.T, until func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !until(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not so after a minute")
		}
	}
}
