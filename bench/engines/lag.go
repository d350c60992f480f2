package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/bench/podset"
	"github.com/tarnproject/tarn/internal/pgtest"
	"github.com/tarnproject/tarn/jetstream"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/postgres"
)

// longestLag is what 99 of 100 changes must stay below.
const longestLag = time.Second

// lookEvery is how often it is asked what an engine has, and so how exact a lag is.
const lookEvery = 2 * time.Millisecond

// tooSlow is a figure beyond its bound.
type tooSlow struct{ error }

// measureLags says how long it takes from a change on a server until an engine has it, with
// every state kept.
func measureLags(ctx context.Context, set *podset.Set, out io.Writer) (err error) {
	pg, err := pgtest.New("fsync=on", "shared_buffers=512MB", "max_wal_size=4GB")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pg.Close()) }()
	address, err := pg.Create("lag")
	if err != nil {
		return err
	}
	db, err := postgres.Connect(address, postgres.Options{Cluster: "lag", History: true})
	if err != nil {
		return err
	}
	defer db.Close()
	n, err := startNATS()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	fmt.Fprintf(out, "\nFrom a change on the embedded API server until the engine has committed it, with every state kept, at %d changes of real pods in a second for %s:\n\n| engine | changes | median | p99 | longest |\n|---|---|---|---|---|\n", *rate, *during)
	var slow error
	for _, engine := range []struct {
		name string
		sink kube.Option
	}{
		{"Postgres", postgres.In[*corev1.Pod](db)},
		{"JetStream", kube.Sink(func(of kube.Origin) (tarn.Sink[*corev1.Pod], error) {
			bucket := jetstream.Bucket{Name: "lag", Events: true, Of: of.Selection(), Source: of.ServerUID}
			return jetstream.New(n.js, bucket, jetstream.Objects[*corev1.Pod]())
		})},
	} {
		lags, err := lagsOf(ctx, set, engine.sink)
		if err != nil {
			return fmt.Errorf("%s: %w", engine.name, err)
		}
		slices.Sort(lags)
		p99 := lags[len(lags)*99/100]
		fmt.Fprintf(out, "| %s | %d | %s | %s | %s |\n", engine.name, len(lags), rounded(lags[len(lags)/2]), rounded(p99), rounded(lags[len(lags)-1]))
		if p99 > longestLag {
			slow = errors.Join(slow, tooSlow{fmt.Errorf("%s: one change in a hundred takes more than %s", engine.name, rounded(p99))})
		}
	}
	return slow
}

func rounded(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

// issued is a change that was made on the server.
type issued struct {
	version tarn.Version
	at      time.Time
}

// lagsOf feeds an engine from a server that changes at the rate.
func lagsOf(ctx context.Context, set *podset.Set, sink kube.Option) (lags []time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, *during+2*time.Minute)
	defer cancel()
	api, err := apiserver.Start(apiserver.Options{AnyNamespace: true})
	if err != nil {
		return nil, err
	}
	defer api.Close()
	all, err := decode(set)
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		if err := api.Import(p); err != nil {
			return nil, err
		}
	}
	copied, err := kube.Reflect[*corev1.Pod](ctx, api.Config(), sink)
	if err != nil {
		return nil, err
	}
	defer func() {
		cancel()
		<-copied.Done()
	}()
	first := tarn.Version(api.Version())
	if err := untilCommitted(ctx, copied, first); err != nil {
		return nil, err
	}
	total := int(during.Seconds() * float64(*rate))
	updates, err := set.Updates(total)
	if err != nil {
		return nil, err
	}
	made := make(chan issued, total)
	failed := make(chan error, 1)
	go func() { failed <- change(ctx, api, updates, made) }()
	for c := range made {
		if err := untilCommitted(ctx, copied, c.version); err != nil {
			return nil, err
		}
		lags = append(lags, time.Since(c.at))
	}
	return lags, <-failed
}

// change makes the updates at the rate.
func change(ctx context.Context, api *apiserver.Server, updates []podset.Update, made chan<- issued) error {
	defer close(made)
	begun := time.Now()
	for i, u := range updates {
		due := begun.Add(time.Duration(i) * time.Second / time.Duration(*rate))
		if wait := time.Until(due); wait > 0 {
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		pod := &corev1.Pod{}
		if err := pod.Unmarshal(u.Pod); err != nil {
			return err
		}
		at := time.Now()
		if err := api.Import(pod); err != nil {
			return err
		}
		made <- issued{tarn.Version(api.Version()), at}
	}
	return nil
}

// untilCommitted waits until the sink has a version.
func untilCommitted(ctx context.Context, copied *tarn.Replica[*corev1.Pod], version tarn.Version) error {
	for {
		health := copied.Health()
		if has := health.Sinks[0].Version; has != "" && !has.OlderThan(version) {
			return nil
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return fmt.Errorf("the engine has not reached version %s: %s: %w", version, health, context.Cause(ctx))
		}
	}
}
