package mirror

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/sqlite"
	"github.com/tarnproject/tarn/sqlite/ondisk"
)

// Mirror is a set of tables, each the live copy of one resource of a cluster, or of several
// clusters: see [StartFleet].
//
//   - The tables share connections, a limit of requests, and the pool in which
//     equal parts of objects are found.
//   - An error of one table is in its Health and in Problems, and does not affect the
//     others.
//   - Any number of goroutines may use it.
type Mirror struct {
	client *kube.Client
	// members are the clusters; nil if there is only one, which has no name.
	members *members
	// clusters are the names of the clusters in a directory.
	clusters []string
	tables   []*Table
	problems problems
	done     chan struct{}
	// disk is where the mirror is kept, nil if nowhere; ledger is the directory's record of
	// it.
	disk   *Disk
	ledger *ledger
}

const (
	// requestsPerSecond and requestBurst apply if the config does not set them: client-go's
	// five per second are for a program that reads a few resources, and a mirror begins with
	// one list for each of many.
	requestsPerSecond = 50
	requestBurst      = 300
)

// Start begins to copy the resources, and does not wait for any of them. It runs until ctx
// ends; then Done is closed. The error covers what can be known without a request; everything
// else is in Problems. Only a mirror on disk first requests the definitions of custom
// resources, for some seconds at most.
func Start(ctx context.Context, cfg *rest.Config, resources []Resource, opts Options) (*Mirror, error) {
	if cfg == nil {
		return nil, errors.New("mirror: the config is nil: get one from rest.InClusterConfig or clientcmd")
	}
	if err := check(resources, opts); err != nil {
		return nil, err
	}
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	server, err := connect(cfg)
	if err != nil {
		return nil, err
	}
	m := &Mirror{done: make(chan struct{}), client: server.client}
	columns, err := m.openDisk(ctx, opts, resources, server)
	if err != nil {
		return nil, err
	}
	if err := m.makeTables(resources, columns, opts); err != nil {
		return nil, err
	}
	m.start(ctx, func(t *Table) { t.expected.learn(ctx, server.asking, t.Sources()) })
	return m, nil
}

// server is the connection to a cluster.
type server struct {
	client      *kube.Client
	connections *http.Client
	asking      metadata.Interface
	reading     rest.Interface
}

// connect makes the clients of a cluster. It sends no request.
func connect(cfg *rest.Config, opts ...kube.ClientOption) (s server, err error) {
	cfg = rest.CopyConfig(cfg)
	if cfg.QPS == 0 && cfg.RateLimiter == nil {
		cfg.QPS, cfg.Burst = requestsPerSecond, requestBurst
	}
	if s.connections, err = rest.HTTPClientFor(cfg); err != nil {
		return s, fmt.Errorf("mirror: no connection can be made to %s: %w", cfg.Host, err)
	}
	if s.client, err = kube.NewClient(cfg, append(opts, kube.WithHTTPClient(s.connections))...); err != nil {
		return s, err
	}
	s.asking, err = metadata.NewForConfigAndClient(metadata.ConfigFor(cfg), s.connections)
	if err == nil {
		s.reading, err = rest.UnversionedRESTClientForConfigAndClient(plainConfig(cfg), s.connections)
	}
	if err != nil {
		return s, fmt.Errorf("mirror: the config of %s is not usable: %w", cfg.Host, err)
	}
	return s, nil
}

// openDisk opens the directory, if there is one, and returns the columns that definitions of
// custom resources add, there or in an engine. The definitions come from the first server
// that answers.
func (m *Mirror) openDisk(ctx context.Context, opts Options, resources []Resource, servers ...server) (columns map[string][]ondisk.Column, err error) {
	if opts.Disk == nil && opts.Feed == nil {
		return nil, nil
	}
	var before map[string]record
	if opts.Disk != nil {
		m.disk = opts.Disk
		if m.ledger, err = openLedger(m.disk.DB); err != nil {
			return nil, err
		}
		before = m.ledger.before
	}
	var clients []rest.Interface
	for _, s := range servers {
		clients = append(clients, s.reading)
	}
	return definitions(ctx, clients, resources, before), nil
}

// makeTables makes a table for each resource, and records the tables.
func (m *Mirror) makeTables(resources []Resource, columns map[string][]ondisk.Column, opts Options) error {
	for _, r := range resources {
		t, err := m.newTable(r, columns[r.Name()], opts)
		if err != nil {
			return err
		}
		if err := m.rolling(t, opts); err != nil {
			return err
		}
		m.tables = append(m.tables, t)
	}
	if m.ledger == nil {
		return nil
	}
	return m.ledger.write(m.disk.DB)
}

// plainConfig is for requests whose answers are read while they arrive.
func plainConfig(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.APIPath = "/"
	cfg.ContentConfig = rest.ContentConfig{NegotiatedSerializer: scheme.Codecs.WithoutConversion()}
	return cfg
}

// start starts everything; done is closed when all of it has ended.
func (m *Mirror) start(ctx context.Context, learn func(*Table), beside ...func()) {
	var running sync.WaitGroup
	for _, run := range beside {
		running.Go(run)
	}
	for _, t := range m.tables {
		t.history.began = time.Now()
		running.Go(func() { t.run(ctx) })
		running.Go(func() { t.verify(ctx) })
		if learn != nil {
			running.Go(func() { learn(t) })
		}
	}
	running.Go(func() { m.observe(ctx) })
	go func() {
		running.Wait()
		close(m.done)
	}()
}

// observe samples the tables until ctx ends.
func (m *Mirror) observe(ctx context.Context) {
	ticker := time.NewTicker(sampleEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			for _, t := range m.tables {
				t.sample(time.Now())
			}
			m.review()
		}
	}
}

func (m *Mirror) review() {
	for _, t := range m.tables {
		m.problems.review(time.Now(), t.resource, t.diagnoses)
	}
}

// Tables are the copies, in the order of the request.
func (m *Mirror) Tables() []*Table { return m.tables }

// Table returns the copy of a resource by its name: "pods", "deployments.apps".
func (m *Mirror) Table(name string) (*Table, bool) {
	for _, t := range m.tables {
		if t.resource.Name() == name {
			return t, true
		}
	}
	return nil, false
}

// Client is the client of the tables.
func (m *Mirror) Client() *kube.Client { return m.client }

// DB is the directory of the mirror, nil if it has none.
func (m *Mirror) DB() *sqlite.DB {
	if m.disk == nil {
		return nil
	}
	return m.disk.DB
}

// Done is closed when everything that the mirror started has ended. The content of the tables
// can still be read.
func (m *Mirror) Done() <-chan struct{} { return m.done }

// Problems are the current and past problems, newest first. Those that ended have Until set;
// the oldest of them are dropped.
func (m *Mirror) Problems() []Problem {
	m.review()
	return m.problems.all()
}
