package postgres

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/enginetest"
	"github.com/tarnproject/tarn/internal/pgtest"
	"github.com/tarnproject/tarn/internal/testsize"
	"github.com/tarnproject/tarn/kube"
)

var (
	kills = testsize.Flag("kills", 4, 2, "how often TestKills kills the feeder or the server")
	seed  = flag.Uint64("seed", 1, "what TestKills does")
)

// feedFrom and feedTo have the test binary feed, in a process of its own.
const feedFrom, feedTo = "TARN_TEST_FEED_FROM", "TARN_TEST_FEED_TO"

// runFeeder feeds ConfigMaps until it is killed.
func runFeeder(kubeconfig, address string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	db, err := Connect(address, Options{History: true, Lease: 400 * time.Millisecond, Delay: 20 * time.Millisecond})
	if err != nil {
		return err
	}
	defer db.Close()
	for db.Claim(ctx, "configmaps") != nil { // the one before, or the server, is to be waited for
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	replica, err := kube.Reflect[*corev1.ConfigMap](ctx, config, In[*corev1.ConfigMap](db))
	if err != nil {
		return err
	}
	<-replica.Done()
	return nil
}

// The feeder and the server are killed at random moments while objects change. Afterwards
// each state is there once, in order, or within a gap.
func TestKills(t *testing.T) {
	if server == nil {
		t.Skip(pgtest.ErrNotInstalled)
	}
	postgres, err := pgtest.New()
	must(t, err)
	defer func() { must(t, postgres.Close()) }()
	address := postgres.URL("postgres")
	db := connect(t, address, Options{})
	engine := readable(db)
	engine.Feed = func(kubeconfig string) *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), feedFrom+"="+kubeconfig, feedTo+"="+address)
		return cmd
	}
	engine.Kill, engine.Start = postgres.Kill, postgres.Start
	outcome := enginetest.Run(t, engine, kills(), *seed)
	fmt.Println("postgres:", outcome)
}

// readable is an engine that can be read.
func readable(db *DB) enginetest.Engine {
	return enginetest.Engine{
		Position: func(ctx context.Context) (tarn.Version, error) {
			got, err := db.try(ctx, "SELECT version FROM tarn_positions")
			return tarn.Version(strings.Join(got, "")), err
		},
		States: func(ctx context.Context) (all []enginetest.State, err error) {
			rows, err := db.try(ctx, "SELECT key, version, operation, inferred FROM configmaps_history ORDER BY seq")
			for _, row := range rows {
				cells := strings.Split(row, "|")
				all = append(all, enginetest.State{Key: tarn.Key(cells[0]), Version: tarn.Version(cells[1]), Deleted: cells[2] == "deleted", Inferred: cells[3] == "true"})
			}
			return all, err
		},
		Gaps: func(ctx context.Context) ([]tarn.Gap, error) { return gapsOf(ctx, db) },
		Present: func(ctx context.Context) (map[tarn.Key]tarn.Version, error) {
			rows, err := db.try(ctx, "SELECT key, resource_version FROM configmaps")
			all := map[tarn.Key]tarn.Version{}
			for _, row := range rows {
				key, version, _ := strings.Cut(row, "|")
				all[tarn.Key(key)] = tarn.Version(version)
			}
			return all, err
		},
	}
}
