package enginetest

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
)

// An Engine is what is fed, with the ConfigMaps of a cluster.
type Engine struct {
	// Feed is the process that feeds the engine from the cluster of a kubeconfig. It must
	// keep every state. It is killed, and made again.
	Feed func(kubeconfig string) *exec.Cmd
	// Kill ends the engine's server as a crash does, and Start starts it again. Both are
	// nil if it has no server.
	Kill  func()
	Start func() error
	// Position is how far the engine has come. States are those that it has, in its order,
	// Gaps the gaps, and Present the objects and versions that it shows. They are called
	// while the server runs.
	Position func(ctx context.Context) (tarn.Version, error)
	States   func(ctx context.Context) ([]State, error)
	Gaps     func(ctx context.Context) ([]tarn.Gap, error)
	Present  func(ctx context.Context) (map[tarn.Key]tarn.Version, error)
}

// Outcome is how a run ended.
type Outcome struct {
	Report
	// Killed counts kills of the feeder, Crashed those of the engine, Compacted how often
	// the source forgot its past, so that the watch could not resume.
	Killed, Crashed, Compacted int
}

func (o Outcome) String() string {
	return fmt.Sprintf("%d kills of the feeder, %d of the engine, %d times the source forgot its past: %s", o.Killed, o.Crashed, o.Compacted, o.Report)
}

// settleTimeout is how long the engine may take to have the last state.
const settleTimeout = 2 * time.Minute

// Run changes objects, kills the feeder and the engine so many times at random, and compares.
func Run(t *testing.T, e Engine, kills int, seed uint64) Outcome {
	t.Helper()
	server, err := apiserver.Start(apiserver.Options{BookmarkInterval: time.Second})
	must(t, err)
	defer server.Close()
	config, err := server.Kubeconfig()
	must(t, err)
	kubeconfig := filepath.Join(t.TempDir(), "config")
	must(t, os.WriteFile(kubeconfig, config, 0o600))

	dice, model := rand.New(rand.NewPCG(seed, 1)), &Model{}
	source := &load{server: server, model: model, dice: rand.New(rand.NewPCG(seed, 2)), exists: map[string]bool{}}
	must(t, source.step(0)) // the namespace is made with it, which is no state of ours
	said, err := os.Create(filepath.Join(t.TempDir(), "said"))
	must(t, err)
	defer said.Close()
	defer func() {
		if text, err := os.ReadFile(said.Name()); t.Failed() && err == nil {
			t.Logf("the feeders said\n%s", text[max(0, len(text)-4000):])
		}
	}()
	r := &runner{engine: e, kubeconfig: kubeconfig, dice: dice, source: server, said: said}
	must(t, r.startFeed())
	defer r.killFeed()
	await(t, e, model.Last()) // what came before the first state is not to be had

	ctx, stop := context.WithCancel(t.Context())
	loaded := make(chan error, 1)
	go func() { loaded <- source.run(ctx) }()
	for range kills {
		pause(dice, 600*time.Millisecond)
		if err := r.strike(); err != nil {
			stop()
			<-loaded
			t.Fatal(err)
		}
		if dice.IntN(4) > 0 { // else the next one comes while it recovers
			await(t, e, model.Last())
		}
	}
	pause(dice, 600*time.Millisecond)
	stop()
	must(t, <-loaded)
	r.outcome.Report = compare(t, e, model)
	return r.outcome
}

// await waits until the engine has come to a version.
func await(t *testing.T, e Engine, last tarn.Version) {
	t.Helper()
	for deadline := time.Now().Add(settleTimeout); ; time.Sleep(20 * time.Millisecond) {
		at, err := e.Position(t.Context())
		if err == nil && at != "" && !at.OlderThan(last) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the engine is at %q (%v), and the source has been at %s for %v", at, err, last, settleTimeout)
		}
	}
}

// compare waits until the engine has everything, and compares.
func compare(t *testing.T, e Engine, model *Model) Report {
	t.Helper()
	await(t, e, model.Last())
	states, err := e.States(t.Context())
	must(t, err)
	gaps, err := e.Gaps(t.Context())
	must(t, err)
	present, err := e.Present(t.Context())
	must(t, err)
	if want := model.Present(); !maps.Equal(present, want) {
		t.Errorf("the engine shows %v, want %v", present, want)
	}
	report := model.Compare(states, gaps)
	if !report.Good() {
		t.Errorf("%s\nlost %s\nrepeated %s\nout of order %s\ninvented %s", report, First(report.Lost), First(report.Repeated), First(report.Disordered), First(report.Invented))
	}
	return report
}

// runner kills.
type runner struct {
	engine     Engine
	kubeconfig string
	dice       *rand.Rand
	source     *apiserver.Server
	feed       *exec.Cmd
	said       *os.File
	outcome    Outcome
}

func (r *runner) startFeed() error {
	r.feed = r.engine.Feed(r.kubeconfig)
	r.feed.Stderr = r.said
	return r.feed.Start()
}

func (r *runner) killFeed() {
	_ = r.feed.Process.Kill() // SIGKILL; it may have ended
	_ = r.feed.Wait()
}

// strike kills the feeder, the engine, or both, and starts them again.
func (r *runner) strike() error {
	feeder, engine := true, false
	if r.engine.Kill != nil {
		choice := r.dice.IntN(10)
		feeder, engine = choice < 7, choice > 4
	}
	if engine {
		r.outcome.Crashed++
		r.engine.Kill()
	}
	if feeder {
		r.outcome.Killed++
		r.killFeed()
		if r.dice.IntN(10) == 0 {
			r.outcome.Compacted++
			pause(r.dice, 100*time.Millisecond)
			r.source.Compact()
		}
	}
	pause(r.dice, 200*time.Millisecond)
	if engine {
		if err := r.engine.Start(); err != nil {
			return err
		}
	}
	if feeder {
		return r.startFeed()
	}
	return nil
}

// pause waits for a random part of a time: processes have no virtual time.
func pause(dice *rand.Rand, most time.Duration) { time.Sleep(time.Duration(dice.Int64N(int64(most)))) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
