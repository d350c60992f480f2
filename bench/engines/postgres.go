package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/jackc/pgx/v5"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn/internal/pgtest"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/postgres"
)

// measurePostgres compares the sink with COPY of the same objects, in batches of the same
// size, into a table with a key and a jsonb, compressed as the sink does it.
func measurePostgres(ctx context.Context, all []*corev1.Pod) (_ []comparison, err error) {
	server, err := pgtest.New("fsync=on", "shared_buffers=512MB", "max_wal_size=4GB")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	named := func(name string) speed { return speed{name: "Postgres: " + name, serverCPU: server.CPU} }
	c := comparison{bare: named("COPY"), sinks: []speed{named("sink, first state"), named("sink, updates"), named("sink, updates with history")}}
	for round := range *rounds {
		address, err := server.Create(fmt.Sprint("round", round))
		if err != nil {
			return nil, err
		}
		if err := c.bare.measure(len(all), func() error { return copyBare(ctx, address, all) }); err != nil {
			return nil, err
		}
		if err := feed(ctx, address, "plain", postgres.Options{Cluster: "plain"}, all, &c.sinks[0], &c.sinks[1]); err != nil {
			return nil, err
		}
		ignored := speed{}
		if err := feed(ctx, address, "history", postgres.Options{Cluster: "history", History: true}, all, &ignored, &c.sinks[2]); err != nil {
			return nil, err
		}
	}
	return []comparison{c}, nil
}

// copyBare writes all objects, encoding included.
func copyBare(ctx context.Context, address string, all []*corev1.Pod) error {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "SELECT set_config(name, 'lz4', false) FROM pg_settings WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals)"); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "CREATE TABLE bare (key text PRIMARY KEY, object jsonb)"); err != nil {
		return err
	}
	for at := 0; at < len(all); {
		end := min(at+*batch, len(all))
		_, err := conn.CopyFrom(ctx, pgx.Identifier{"bare"}, []string{"key", "object"}, pgx.CopyFromFunc(func() ([]any, error) {
			if at == end {
				return nil, nil
			}
			p := all[at]
			at++
			raw, err := json.Marshal(p)
			return []any{p.Namespace + "/" + p.Name, raw}, err
		}))
		if err != nil {
			return err
		}
	}
	return nil
}

// feed writes a first state and then an update of each object.
func feed(ctx context.Context, address, schema string, opts postgres.Options, all []*corev1.Pod, first, update *speed) error {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "CREATE SCHEMA "+schema); err != nil {
		return err
	}
	db, err := postgres.Connect(address+"&search_path="+schema, opts)
	if err != nil {
		return err
	}
	defer db.Close()
	of, err := origin()
	if err != nil {
		return err
	}
	sink, err := postgres.NewObjectSink[*corev1.Pod](db, of)
	if err != nil {
		return err
	}
	defer sink.Close()
	if _, err := sink.Open(ctx, nil); err != nil {
		return err
	}
	for i, result := range []*speed{first, update} {
		batches := changes(all, steps[i].kind, steps[i].version, *batch)
		if err := result.measure(len(all), func() error { return commitAll(ctx, sink, batches) }); err != nil {
			return err
		}
	}
	return nil
}

// origin is that of pods on a server that is not asked for anything.
func origin() (kube.Origin, error) {
	client, err := kube.NewClient(&rest.Config{Host: "http://nowhere.invalid"})
	if err != nil {
		return kube.Origin{}, err
	}
	resource := corev1.SchemeGroupVersion.WithResource("pods")
	return kube.OriginOf(client, kube.Collection{Resource: resource, Kind: corev1.SchemeGroupVersion.WithKind("Pod"), Object: reflect.TypeFor[*corev1.Pod]()}), nil
}
