package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tarnproject/tarn/bench/podset"
	"github.com/tarnproject/tarn/bench/report"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/sqlite"
)

// column is what was measured with one number of states.
type column struct {
	states int
	// size is that of the file with the history.
	size int64
	// cpu is that of an update in µs, memory that of the process in bytes, with a history
	// and without; ratio is that of the first two.
	cpu, cpuWithout, ratio float64
	memory, without        int64
	// answers are how long questions take.
	answers []answer
}

// answer is how long a question takes, in ms: by the clock, and of CPU.
type answer struct{ wall, cpu float64 }

// question is asked at several moments, or of several pods; the slowest counts.
type question struct {
	what, target string
	sql          string
	past         bool
}

var questions = []question{
	{"columns of all pods as of a moment (ready = 0)", "250 ms", "SELECT namespace, name, status, restarts FROM pods WHERE ready = 0", true},
	{"columns of all pods as of a moment (by node)", "250 ms", "SELECT node, count(*), sum(restarts) FROM pods GROUP BY node", true},
	{"whole objects of all pods as of a moment", "1.5 s", "SELECT sum(length(object)) FROM pods", true},
	{"one pod's history, columns", "20 ms", "SELECT version, operation, status, restarts, valid_from FROM pods_history WHERE key = ?", false},
	{"one pod's history, whole objects", "", "SELECT version, operation, valid_from, object FROM pods_history WHERE key = ?", false},
}

// fromGo is asked of the log, without SQL.
const fromGo = "one pod's history, all states from Go"

func (c *column) ask(ctx context.Context, path string, l *load) error {
	c.size = sizeOf(path)
	for _, q := range questions {
		slowest := answer{}
		for _, tenth := range []int{1, 5, 9} {
			at, args := sqlite.Moment{}, []any{string(l.key(len(l.pods) / 10 * tenth))}
			if q.past {
				at, args = sqlite.Moment{Time: l.moment(tenth)}, nil
			}
			took, err := median(func() error {
				_, err := at.Query(ctx, path, q.sql, sqlite.Limits{Rows: 1 << 20, Bytes: 256 << 20, Time: time.Minute}, args...)
				return err
			})
			if err != nil {
				return fmt.Errorf("%s: %w", q.what, err)
			}
			slowest = answer{max(slowest.wall, took.wall), max(slowest.cpu, took.cpu)}
		}
		progress("%d states: %s: %.1f ms, %.1f ms of CPU", c.states, q.what, slowest.wall, slowest.cpu)
		c.answers = append(c.answers, slowest)
	}
	reader, err := sqlite.OpenReader(path, nil)
	if err != nil {
		return err
	}
	defer reader.Close()
	took, err := median(func() error {
		for _, err := range reader.Log("pods").Of(ctx, l.key(17)) {
			if err != nil {
				return err
			}
		}
		return nil
	})
	progress("%d states: %s: %.1f ms, %.1f ms of CPU", c.states, fromGo, took.wall, took.cpu)
	c.answers = append(c.answers, took)
	return err
}

// moment is after some tenths of all updates, and most often within a commit: those of this
// program are as large as a relist of all objects, or larger.
func (l *load) moment(tenths int) time.Time {
	return began.Add(time.Duration(l.made/10*tenths+17) * tick)
}

// median calls a function some times, and returns the medians.
func median(call func() error) (answer, error) {
	var wall, cpu []float64
	for range *rounds {
		from, spent := time.Now(), report.CPUTime()
		if err := call(); err != nil {
			return answer{}, err
		}
		cpu = append(cpu, (report.CPUTime()-spent).Seconds()*1000)
		wall = append(wall, time.Since(from).Seconds()*1000)
	}
	slices.Sort(wall)
	slices.Sort(cpu)
	return answer{wall[len(wall)/2], cpu[len(cpu)/2]}, nil
}

const (
	// smallGroup is how many updates a commit has while CPU is measured.
	smallGroup = 1000
	// roundCommits is how many commits a round has: enough that each has its share of what
	// SQLite moves from its log into the file.
	roundCommits = 5
)

// write writes the same updates with a history and without, in turns. The medians of the
// rounds count, and the ratio is the median of those within a round: other work on the
// machine makes both slower while it lasts.
func (c *column) write(ctx context.Context, path, without string, of kube.Origin, l *load) error {
	if _, err := os.Stat(without); os.IsNotExist(err) {
		if err := start(ctx, without, of, l, sqlite.History{}); err != nil {
			return err
		}
	}
	plain, err := open(without, of, sqlite.History{})
	if err != nil {
		return err
	}
	// The first commits read what is remembered later: after these, 95 of 100 pods are.
	warm, measured := 3**pods/smallGroup, max(1, *written/smallGroup/roundCommits)
	spend := func(d *directory, total *time.Duration, l *load, n int) error {
		for range n {
			b := l.batch(smallGroup)
			from := report.CPUTime()
			if err := d.sink.Commit(ctx, b); err != nil {
				return err
			}
			*total += report.CPUTime() - from
		}
		return nil
	}
	var ignored time.Duration
	if err := spend(plain, &ignored, l, warm); err != nil {
		return err
	}
	kept, err := open(path, of, unbounded)
	if err != nil {
		return err
	}
	if err := spend(kept, &ignored, l, warm); err != nil {
		return err
	}
	with, out, ratios := make([]time.Duration, measured), make([]time.Duration, measured), make([]float64, measured)
	for i := range measured * roundCommits {
		b := l.batch(smallGroup)
		for j := range 2 {
			d, total := plain, &out[i/roundCommits]
			if (i+j)%2 == 0 {
				d, total = kept, &with[i/roundCommits]
			}
			from := report.CPUTime()
			var err error
			pprof.Do(ctx, pprof.Labels("history", strconv.FormatBool(d == kept)), func(ctx context.Context) { err = d.sink.Commit(ctx, b) })
			if err != nil {
				return err
			}
			*total += report.CPUTime() - from
		}
	}
	for i := range ratios {
		ratios[i] = with[i].Seconds() / out[i].Seconds()
	}
	slices.Sort(ratios)
	c.cpu, c.cpuWithout, c.ratio = perUpdate(with), perUpdate(out), ratios[measured/2]
	// What a directory has is what is free without it: the updates take memory too.
	open := memory()
	if err := kept.close(); err != nil {
		return err
	}
	closed := memory()
	if err := plain.close(); err != nil {
		return err
	}
	c.memory, c.without = open-closed, closed-memory()
	progress("%d states: %.1f µs CPU per update, %.1f without, %.2f × (%.2f to %.2f in %d rounds); %d MiB of memory, %d without",
		c.states, c.cpu, c.cpuWithout, c.ratio, ratios[0], ratios[measured-1], measured, c.memory>>20, c.without>>20)
	return nil
}

// perUpdate is the CPU of an update in the median of some rounds, in µs.
func perUpdate(rounds []time.Duration) float64 {
	slices.Sort(rounds)
	return float64(rounds[len(rounds)/2].Microseconds()) / (roundCommits * smallGroup)
}

// memory is the heap in use, and what SQLite has beside it.
func memory() int64 {
	debug.FreeOSMemory()
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(raw)) {
		n := int64(0)
		if _, err := fmt.Sscanf(line, "RssAnon: %d kB", &n); err == nil {
			return n << 10
		}
	}
	return 0
}

// results are all that was measured.
type results struct {
	set     *podset.Set
	columns []*column
	sizes   []boundedSize
}

// boundedSize is the size of a directory with a bound after some updates, and how far its
// history reached back after each commit since the size before.
type boundedSize struct {
	updates           int
	size              int64
	shortest, longest time.Duration
}
