package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"github.com/tarnproject/tarn/bench/podset"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/sqlite"
)

// fill writes to a directory with a bound until long after it is reached.
func (r *results) fill(ctx context.Context, path string, of kube.Origin, set *podset.Set) error {
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	l, err := newLoad(set)
	if err != nil {
		return err
	}
	h := sqlite.History{Bytes: *bound << 20}
	if err := start(ctx, path, of, l, h); err != nil {
		return err
	}
	d, err := open(path, of, h)
	if err != nil {
		return err
	}
	defer d.close()
	const step, most = 50_000, 800_000
	for range most / step {
		// The horizon moves in steps about as often as a row is added. One reading in each
		// row would show a slow trend that does not exist.
		shortest, longest := time.Duration(math.MaxInt64), time.Duration(0)
		for range step / 5000 {
			if err := d.sink.Commit(ctx, l.batch(5000)); err != nil {
				return err
			}
			bounds, err := d.db.Log("pods").Bounds(ctx)
			if err != nil {
				return err
			}
			reach := l.now.Sub(bounds.Since)
			shortest, longest = min(shortest, reach), max(longest, reach)
		}
		info, err := os.Stat(path + "/" + fileName)
		if err != nil {
			return err
		}
		r.sizes = append(r.sizes, boundedSize{l.made, info.Size(), shortest, longest})
		progress("bound of %d MiB: %d MiB after %d updates", *bound, info.Size()>>20, l.made)
	}
	return nil
}

// text is the section of the page.
func (r *results) text() string {
	var b strings.Builder
	size := 0
	for _, raw := range r.set.Pods {
		size += len(raw)
	}
	fmt.Fprintf(&b, "%d pods of %.1f KB on average, their status updated at random, measured on %s. Each question is asked %d times, at three moments or about three pods; the table has the median of the slowest of the three.\n\n",
		len(r.set.Pods), float64(size)/float64(len(r.set.Pods))/1000, time.Now().Format("2 January 2006"), *rounds)
	row := func(what, target string, value func(c *column) string) {
		fmt.Fprintf(&b, "| %s | %s |", what, target)
		for _, c := range r.columns {
			fmt.Fprintf(&b, " %s |", value(c))
		}
		b.WriteByte('\n')
	}
	row("past states", "aim", func(c *column) string { return thousands(c.states) })
	row("---", "---:", func(*column) string { return "---:" })
	row("file", "", func(c *column) string { return fmt.Sprintf("%d MB", c.size/1e6) })
	row("bytes on disk per further update", "500", func(c *column) string { return r.further(c) })
	row("CPU of an update, in commits of 1,000, to that without a history", "1.5 ×", func(c *column) string {
		return fmt.Sprintf("%.0f µs, %.2f ×", c.cpu, c.ratio)
	})
	row("memory of the writer, more than without a history", "20 MB", func(c *column) string { return fmt.Sprintf("%.1f MB", float64(c.memory-c.without)/1e6) })
	for i, q := range questions {
		row(q.what, q.target, func(c *column) string { return c.answers[i].String() })
	}
	row(fromGo, "20 ms", func(c *column) string { return c.answers[len(questions)].String() })
	if len(r.sizes) > 0 {
		fmt.Fprintf(&b, "\nA directory with a bound of %d MB:\n\n| updates | file | of the bound | shortest reach since the row before | longest |\n| ---: | ---: | ---: | ---: | ---: |\n", *bound<<20/1e6)
		for _, s := range r.sizes {
			fmt.Fprintf(&b, "| %s | %d MB | %.1f %% | %s | %s |\n", thousands(s.updates), s.size/1e6, float64(s.size)/float64(*bound<<20)*100, s.shortest.Round(time.Second), s.longest.Round(time.Second))
		}
	}
	return b.String()
}

// further is what an update adds to the file: between the column before and this one.
func (r *results) further(c *column) string {
	for i, other := range r.columns {
		if other == c && i > 0 {
			before := r.columns[i-1]
			return fmt.Sprintf("%.0f", float64(c.size-before.size)/float64(c.states-before.states))
		}
	}
	return ""
}

func (a answer) String() string { return milliseconds(a.wall) + ", CPU " + milliseconds(a.cpu) }

func milliseconds(ms float64) string {
	if ms < 10 {
		return fmt.Sprintf("%.1f ms", ms)
	}
	return fmt.Sprintf("%.0f ms", ms)
}

func thousands(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
