package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/etcd"
	"github.com/tarnproject/tarn/internal/proxytest"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// secure switches authentication on, with a user who may read the prefix. It returns the
// clients of the administrator and of that user.
func (s testServer) secure() (root, reader *clientv3.Client) {
	s.t.Helper()
	admin, ctx := s.connect(), s.t.Context()
	for _, err := range []error{
		second(admin.UserAdd(ctx, "root", "secret")), second(admin.RoleAdd(ctx, "root")), second(admin.UserGrantRole(ctx, "root", "root")),
		second(admin.UserAdd(ctx, "reader", "word")), second(admin.RoleAdd(ctx, "reader")), second(admin.UserGrantRole(ctx, "reader", "reader")),
		second(admin.RoleGrantPermission(ctx, "reader", prefix, clientv3.GetPrefixRangeEnd(prefix), clientv3.PermissionType(clientv3.PermRead))),
		second(admin.AuthEnable(ctx)),
	} {
		if err != nil {
			s.t.Fatal(err)
		}
	}
	return s.connect(func(c *clientv3.Config) { c.Username, c.Password = "root", "secret" }),
		s.connect(func(c *clientv3.Config) { c.Username, c.Password = "reader", "word" })
}

// Somebody changes users or roles, after which the cluster takes no token of before. A watch
// that is opened then has a new one, whatever other watches of the client are open.
func TestTokensThatBecomeOld(t *testing.T) {
	s := startServer(t)
	root, client := s.secure()
	put(t, root, "a", "1")
	source := newSource(t, client)
	page := pageOf(t)(source.List(t.Context(), tarn.ListQuery{AtLeast: tarn.Latest}))
	watch := func() tarn.Stream[*etcd.Entry[string]] {
		w, err := source.Watch(t.Context(), tarn.WatchQuery{From: page.Version})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Close)
		return w
	}
	next := func(w tarn.Stream[*etcd.Entry[string]]) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if n, err := w.Next(ctx, make([]tarn.Event[*etcd.Entry[string]], 1)); err != nil || n != 1 {
			t.Fatalf("%d events (%v)", n, err)
		}
	}
	first := watch()
	put(t, root, "a", "2")
	next(first)
	if _, err := root.UserAdd(t.Context(), "somebody", "else"); err != nil {
		t.Fatal(err)
	}
	next(watch())
}

// A cluster that takes requests and answers none does not hold the caller of a watch for
// longer than it wants to wait. A watch that was opened in time lives on after that context.
func TestWatchOfSilentCluster(t *testing.T) {
	s := startServer(t)
	between := proxytest.Start(t, "tcp", s.client.Host)
	client := s.connect(func(c *clientv3.Config) { c.Endpoints = []string{"http://" + between.Address()} })
	source := newSource(t, client)
	page := pageOf(t)(source.List(t.Context(), tarn.ListQuery{AtLeast: tarn.Latest}))
	open := func(ctx context.Context) (tarn.Stream[*etcd.Entry[string]], error) {
		return source.Watch(ctx, tarn.WatchQuery{From: page.Version})
	}
	short, end := context.WithCancel(t.Context())
	opened, err := open(short)
	end()
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	put(t, client, "a", "1")
	if n, err := opened.Next(t.Context(), make([]tarn.Event[*etcd.Entry[string]], 1)); n != 1 || err != nil {
		t.Fatalf("the watch has %d events after its opening has ended (%v)", n, err)
	}
	between.Silence()
	for range 2 { // the second waits behind the first in the client
		ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, errWaited)
		defer cancel()
		returned := make(chan error, 1)
		go func() {
			w, err := open(ctx)
			if err == nil {
				w.Close()
			}
			returned <- err
		}()
		select {
		case err := <-returned:
			if !errors.Is(err, errWaited) {
				t.Errorf("it returns %v", err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("it waits after the end of its context")
		}
	}
}

var errWaited = errors.New("this is long enough")

// A prefix may end in the highest bytes: what follows it is not below it, and there may be
// nothing that follows.
func TestHighestPrefix(t *testing.T) {
	client := startServer(t).connect()
	for prefix, others := range map[string][]string{"/x\xff": {"/x\xfe", "/x\xff", "/y", "/y0", "0"}, "\xff\xff": {"\xff", "\xff\xfe\xff", "\xff\xff"}} {
		source, err := etcd.NewSource(client, prefix, etcd.Text)
		if err != nil {
			t.Fatal(err)
		}
		r := follow(t, source)
		for _, key := range append(others, prefix+"\x00", prefix+"a", prefix+"\xff") {
			if _, err := client.Put(t.Context(), key, ""); err != nil {
				t.Fatal(err)
			}
		}
		wait(t, func() bool { return r.Len() == 3 && r.Version() != "" })
		page := pageOf(t)(source.List(t.Context(), tarn.ListQuery{AtLeast: tarn.Latest}))
		if len(page.Items) != 3 || len(page.Bad) != 0 {
			t.Errorf("below %q there are %d keys", prefix, len(page.Items))
		}
		for _, key := range others {
			if _, err := client.Delete(t.Context(), key); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A lease of thousands of keys ends in one transaction, larger than what is taken at once, and
// values may be as large as etcd takes them.
func TestLeaseOfManyKeysEnds(t *testing.T) {
	client := startServer(t).connect()
	r := follow(t, newSource(t, client))
	lease, err := client.Grant(t.Context(), 3600)
	if err != nil {
		t.Fatal(err)
	}
	for from := 0; from < 3000; from += 100 {
		var all []clientv3.Op
		for i := range 100 {
			all = append(all, clientv3.OpPut(fmt.Sprint(prefix, from+i), "x", clientv3.WithLease(lease.ID)))
		}
		if _, err := client.Txn(t.Context()).Then(all...).Commit(); err != nil {
			t.Fatal(err)
		}
	}
	put(t, client, "large", strings.Repeat("x", 1<<20))
	equals(t, client, r)
	if _, err := client.Revoke(t.Context(), lease.ID); err != nil {
		t.Fatal(err)
	}
	equals(t, client, r)
	if r.Len() != 1 {
		t.Errorf("%d keys are left", r.Len())
	}
}
