package etcd_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/etcd"
	"github.com/tarnproject/tarn/memory"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// A tree of settings that is always up to date. The client is one of the caller's: here,
// of a server in the process.
func ExampleNewSource() {
	withServer(func(ctx context.Context, client *clientv3.Client) {
		type config struct{ Level string }
		_, _ = client.Put(ctx, "/config/frontend", `{"Level":"info"}`)

		source, err := etcd.NewSource(client, "/config/", etcd.JSON[config])
		if err != nil {
			log.Fatal(err)
		}
		replica, err := tarn.NewReplica(source, memory.New[*etcd.Entry[config]](), tarn.Options[*etcd.Entry[config]]{Name: "config"})
		if err != nil {
			log.Fatal(err)
		}
		ctx, cancel := context.WithCancel(ctx)
		defer func() { cancel(); <-replica.Done() }()
		go func() { _ = replica.Run(ctx) }()
		for change := range replica.Changes(ctx) {
			fmt.Println(change.Key, change.Object.Value.Level)
			if change.Object.Value.Level == "debug" {
				break
			}
			_, _ = client.Put(ctx, "/config/frontend", `{"Level":"debug"}`)
		}
	})
	// Output:
	// frontend info
	// frontend debug
}

// withServer runs an etcd meanwhile, and ends ctx before it.
func withServer(do func(ctx context.Context, client *clientv3.Client)) {
	dir, err := os.MkdirTemp("", "etcd")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	server, err := newServer(dir)
	if err != nil {
		log.Fatal(err)
	}
	defer server.stop()
	client, err := clientv3.New(server.settings())
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	do(context.Background(), client)
}
