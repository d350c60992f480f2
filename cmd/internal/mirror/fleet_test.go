package mirror

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/cmd/internal/fleet"
	"github.com/tarnproject/tarn/sqlite"
)

// fleetRig is several servers in a bubble.
type fleetRig struct {
	*testing.T
	rigs map[string]*rig
}

func fleetInBubble(t *testing.T, test func(f *fleetRig), names ...string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &fleetRig{T: t, rigs: map[string]*rig{}}
		for _, name := range names {
			r := &rig{T: t, server: apiserver.New(apiserver.Options{AnyNamespace: true})}
			defer r.server.Close()
			var err error
			if r.catalog, err = Discover(t.Context(), r.server.Config()); err != nil {
				t.Fatal(err)
			}
			f.rigs[name] = r
		}
		test(f)
	})
}

func (f *fleetRig) cluster(name string) fleet.Cluster {
	return fleet.Cluster{Name: name, Config: f.rigs[name].config()}
}

// start starts a mirror of config maps in clusters, and returns what ends it.
func (f *fleetRig) start(opts Options, names ...string) (*Mirror, func()) {
	f.Helper()
	var clusters []fleet.Cluster
	for _, name := range names {
		clusters = append(clusters, f.cluster(name))
	}
	maps, err := f.rigs[names[0]].catalog.Find("configmaps")
	if err != nil {
		f.Fatal(err)
	}
	opts.Logger = slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithCancel(f.Context())
	all, err := fleet.Of(clusters...)
	if err != nil {
		f.Fatal(err)
	}
	m, err := StartFleet(ctx, all, []Resource{maps}, opts)
	if err != nil {
		cancel()
		f.Fatal(err)
	}
	return m, func() {
		cancel()
		<-m.Done()
	}
}

func (f *fleetRig) kill(name string) {
	f.rigs[name].interfere(func(*http.Request, http.RoundTripper) (*http.Response, error) {
		return nil, errors.New("connection refused")
	})
	f.rigs[name].server.Close()
}

func wantKeys(t *testing.T, m *Mirror, want string) {
	t.Helper()
	table, _ := m.Table("configmaps")
	if got := keys(table); got != want {
		t.Errorf("the copy has %q, want %q", got, want)
	}
}

// The same name in two clusters is two objects; a cluster that is unreachable stops nobody, and
// clusters come and go.
func TestFleet(t *testing.T) {
	fleetInBubble(t, func(f *fleetRig) {
		for _, name := range []string{"east", "west", "dead", "north"} {
			f.rigs[name].put("shop", "web")
		}
		f.kill("dead")
		m, stop := f.start(Options{}, "east", "west", "dead")
		defer stop()
		if err := m.WaitSynced(f.Context()); err != nil {
			t.Fatal(err)
		}
		wantKeys(t, m, "east/shop/web west/shop/web")
		f.rigs["west"].put("shop", "db")
		if err := m.AddCluster(f.cluster("north")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		wantKeys(t, m, "east/shop/web north/shop/web west/shop/db west/shop/web")
		problems := m.Problems()
		if len(problems) != 1 || problems[0].Cluster != "dead" || problems[0].Over() {
			t.Errorf("problems %+v", problems)
		}
		if err := m.RemoveCluster("east"); err != nil {
			t.Fatal(err)
		}
		if err := m.RemoveCluster("dead"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		wantKeys(t, m, "north/shop/web west/shop/db west/shop/web")
		if got := strings.Join(m.Clusters(), " "); got != "north west" {
			t.Errorf("the clusters are %q", got)
		}
		if problems := m.Problems(); !problems[0].Over() {
			t.Errorf("a problem of a cluster that is gone: %+v", problems[0])
		}
		for says, err := range map[string]error{
			`there is a cluster "west" already`: m.AddCluster(f.cluster("west")),
			`there is no cluster "east"`:        m.RemoveCluster("east"),
			"cannot be the name of a cluster":   m.AddCluster(fleet.Cluster{Name: "a/b", Config: f.rigs["east"].config()}),
		} {
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%v, want %q", err, says)
			}
		}
	}, "east", "west", "dead", "north")
}

// A cluster that dies is stale within a minute, by its own Health, and the others are not.
func TestFleetDeadClusterIsStale(t *testing.T) {
	fleetInBubble(t, func(f *fleetRig) {
		f.rigs["east"].put("shop", "web")
		f.rigs["west"].put("shop", "web")
		m, stop := f.start(Options{}, "east", "west")
		defer stop()
		if err := m.WaitSynced(f.Context()); err != nil {
			t.Fatal(err)
		}
		f.kill("west")
		time.Sleep(time.Minute)
		f.rigs["east"].put("shop", "new")
		synctest.Wait()
		table, _ := m.Table("configmaps")
		for _, h := range table.Replica().Health().Sections {
			if fresh := h.Fresh(time.Minute); fresh != (h.Section == "east") {
				t.Errorf("fresh %v: %s", fresh, h)
			}
		}
		wantKeys(t, m, "east/shop/new east/shop/web west/shop/web")
	}, "east", "west")
}

// Each cluster has its own row in the metrics.
func TestFleetMetrics(t *testing.T) {
	fleetInBubble(t, func(f *fleetRig) {
		f.kill("dead")
		m, stop := f.start(Options{}, "east", "dead")
		defer stop()
		if err := m.WaitSynced(f.Context()); err != nil {
			t.Fatal(err)
		}
		registry := prometheus.NewRegistry()
		if err := registry.Register(m.Collector()); err != nil {
			t.Fatal(err)
		}
		synced := func() string {
			t.Helper()
			families, err := registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			synced := map[string]float64{}
			for _, family := range families {
				for _, series := range family.GetMetric() {
					for _, label := range series.GetLabel() {
						if family.GetName() == "tarn_cluster_synced" {
							synced[label.GetValue()] += series.GetGauge().GetValue()
						} else if label.GetValue() == "dead" {
							synced[label.GetValue()] += 0
						}
					}
				}
			}
			return fmt.Sprint(synced)
		}
		if got := synced(); got != "map[configmaps:1 dead:0 east:1]" {
			t.Errorf("synced, by the values of labels: %s", got)
		}
		if err := m.RemoveCluster("dead"); err != nil {
			t.Fatal(err)
		}
		if got := synced(); got != "map[configmaps:1 east:1]" {
			t.Errorf("after a cluster was removed: %s", got)
		}
		if err := m.AddCluster(f.cluster("north")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := synced(); got != "map[configmaps:2 east:1 north:1]" {
			t.Errorf("after another one was added: %s", got)
		}
	}, "east", "dead", "north")
}

// What a fleet keeps on disk is there after a restart, in SQL by cluster, without the
// clusters that are gone.
func TestFleetOnDisk(t *testing.T) {
	fleetInBubble(t, func(f *fleetRig) {
		for _, name := range []string{"east", "west", "north"} {
			f.rigs[name].put("shop", "web", "db")
		}
		dir := filepath.Join(t.TempDir(), "replica")
		run := func(use func(m *Mirror), names ...string) {
			t.Helper()
			db, err := sqlite.Open(dir, sqlite.Options{Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			m, stop := f.start(Options{Disk: &Disk{DB: db}}, names...)
			if err := m.WaitSynced(f.Context()); err != nil {
				t.Fatal(err)
			}
			use(m)
			stop()
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		}
		count := func(m *Mirror) string {
			t.Helper()
			if err := m.DB().Flush(); err != nil {
				t.Fatal(err)
			}
			result, err := m.SQL(f.Context(), "SELECT cluster, count(*) FROM configmaps WHERE namespace = 'shop' GROUP BY cluster ORDER BY 1", sqlite.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprint(result.Rows)
		}
		run(func(m *Mirror) {
			if got := count(m); got != "[[east 2] [west 2]]" {
				t.Errorf("SQL says %s", got)
			}
		}, "east", "west")
		f.rigs["east"].put("shop", "third")
		f.kill("west")
		run(func(m *Mirror) {
			synctest.Wait()
			table, _ := m.Table("configmaps")
			for _, h := range table.Replica().Health().Sections {
				if lists := h.Lists["start"]; lists != 0 {
					t.Errorf("%s was listed after a restart", h)
				}
				if h.Section == "west" && !h.FromDisk {
					t.Errorf("what is known of the dead one is not served: %s", h)
				}
			}
			if got := count(m); got != "[[east 3] [west 2]]" {
				t.Errorf("after a restart SQL says %s", got)
			}
		}, "east", "west")
		run(func(m *Mirror) {
			if got := count(m); got != "[[east 3] [north 2]]" {
				t.Errorf("with other clusters SQL says %s", got)
			}
			if err := m.RemoveCluster("north"); err != nil {
				t.Error(err)
			}
			if got := count(m); got != "[[east 3]]" {
				t.Errorf("after a cluster was removed SQL says %s", got)
			}
		}, "east", "north")
		d, err := OpenDirectory(f.Context(), dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		resource, _ := d.Catalog().Find("configmaps")
		sources, err := d.Sources(f.Context(), resource, Options{Namespaces: []string{"shop"}})
		if err != nil || len(sources) != 1 || sources[0].Cluster != "east" {
			t.Fatalf("the directory has %v: %v", sources, err)
		}
		page, err := sources[0].List(f.Context(), tarn.ListQuery{})
		if err != nil || len(page.Items) != 3 {
			t.Errorf("%d objects: %v", len(page.Items), err)
		}
	}, "east", "west", "north")
}

// A cluster that takes the name of another one does not get its objects, nor does it resume
// at its version.
func TestFleetOtherCluster(t *testing.T) {
	fleetInBubble(t, func(f *fleetRig) {
		f.rigs["east"].put("shop", "web", "db")
		f.rigs["west"].put("shop", "web")
		f.rigs["other"].put("shop", "queue")
		dir := filepath.Join(t.TempDir(), "replica")
		run := func(want string) {
			t.Helper()
			db, err := sqlite.Open(dir, sqlite.Options{Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			m, stop := f.start(Options{Disk: &Disk{DB: db}}, "east", "west")
			if err := m.WaitSynced(f.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			wantKeys(t, m, want)
			stop()
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		}
		run("east/shop/db east/shop/web west/shop/web")
		f.rigs["east"] = f.rigs["other"]
		run("east/shop/queue west/shop/web")
		run("east/shop/queue west/shop/web")
	}, "east", "west", "other")
}

// The past of a fleet names the clusters too.
func TestFleetHistory(t *testing.T) {
	fleetInBubble(t, func(f *fleetRig) {
		f.rigs["east"].put("shop", "web")
		f.rigs["west"].put("shop", "web")
		db, err := sqlite.Open(filepath.Join(t.TempDir(), "replica"), sqlite.Options{
			History: sqlite.History{Age: time.Hour}, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		m, stop := f.start(Options{Disk: &Disk{DB: db}}, "east", "west")
		if err := m.WaitSynced(f.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		before := time.Now()
		time.Sleep(time.Minute)
		f.rigs["west"].put("shop", "web", "db")
		time.Sleep(time.Minute)
		ask := func(at sqlite.Moment, statement, want string) {
			t.Helper()
			result, err := at.Query(f.Context(), m.DB().Dir(), statement, sqlite.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(result.Rows); got != want {
				t.Errorf("%s\n%s\nwant %s", statement, got, want)
			}
		}
		ask(sqlite.Moment{}, "SELECT cluster, name, count(*) FROM configmaps_history WHERE namespace = 'shop' GROUP BY 1, 2 ORDER BY 1, 2", "[[east web 1] [west db 1] [west web 2]]")
		count := "SELECT cluster, count(*) FROM configmaps WHERE namespace = 'shop' GROUP BY 1 ORDER BY 1"
		ask(sqlite.Moment{}, count, "[[east 1] [west 2]]")
		ask(sqlite.Moment{Time: before}, count, "[[east 1] [west 1]]")
		stop()
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}, "east", "west")
}
