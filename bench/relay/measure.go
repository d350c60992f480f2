package main

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"runtime"
	"slices"
	"time"
)

const podsPath = "/api/v1/pods"

// outcome is what one round of updates showed.
type outcome struct {
	cpu, originCPU time.Duration // of the server that was watched, and of the one behind it
	memory         int64         // of the open watches
	delivered      int64
	expected       int64
	ended          int64
	encrypted      float64 // the share of the CPU that is encryption
	p50, p99       time.Duration
}

// round has watches open at a server while objects are updated.
func (b *benchmark) round(ctx context.Context, at *server, a audience, n int, rate float64, small bool, expected int64) (o outcome, err error) {
	version, err := b.writer.version(ctx, small)
	if err != nil {
		return o, err
	}
	before, err := at.live(ctx)
	if err != nil {
		return o, err
	}
	w, err := open(ctx, at, a, version)
	if err != nil {
		return o, err
	}
	defer w.close()
	select { // what the connecting has left behind
	case <-time.After(2 * time.Second):
	case <-ctx.Done():
		return o, context.Cause(ctx)
	}
	live, err := at.live(ctx)
	if err != nil {
		return o, err
	}
	o.memory = live - before
	cpu, err := at.cpu()
	if err != nil {
		return o, err
	}
	originCPU, err := b.origin.cpu()
	if err != nil {
		return o, err
	}
	profiling := at.profileFor(ctx, time.Duration(float64(n)/rate*float64(time.Second)))
	if err := b.writer.write(ctx, n, rate, small); err != nil {
		return o, err
	}
	w.await(ctx, expected)
	if o.encrypted, err = profiling.wait(); err != nil {
		return o, err
	}
	after, err := at.cpu()
	if err != nil {
		return o, err
	}
	originAfter, err := b.origin.cpu()
	if err != nil {
		return o, err
	}
	o.cpu, o.originCPU = after-cpu, originAfter-originCPU
	o.delivered, o.expected, o.ended = w.events.Load(), expected, w.ended.Load()
	o.p50, o.p99 = w.delays.quantile(0.5), w.delays.quantile(0.99)
	return o, nil
}

// ofAllPods is a round of watches of all pods.
func (b *benchmark) ofAllPods(ctx context.Context, at *server, count, streams int) (outcome, error) {
	a := audience{count: count, streams: streams, path: podsPath, query: everything}
	return b.round(ctx, at, a, *updates, *rate, false, int64(count)*int64(*updates))
}

func connections(streams int) string {
	if streams == 0 {
		return "HTTP/1.1"
	}
	return fmt.Sprintf("HTTP/2, %d watches on a connection", streams)
}

// delivery is what one round with many watches showed of a server, and one with a single
// watch.
type delivery struct {
	perEvent float64 // µs of CPU
	perWatch float64 // KiB
	alone    time.Duration
	outcome
}

func (b *benchmark) delivery(ctx context.Context, at *server, streams int) (d delivery, err error) {
	alone, err := b.ofAllPods(ctx, at, 1, streams)
	if err != nil {
		return d, err
	}
	if d.outcome, err = b.ofAllPods(ctx, at, *watchers, streams); err != nil {
		return d, err
	}
	d.perEvent = float64((d.cpu - alone.cpu).Microseconds()) / float64(max(d.delivered-alone.delivered, 1))
	d.alone = alone.p99
	d.perWatch = float64(d.memory) / float64(*watchers) / 1024
	return d, nil
}

// deliveries compares what an event costs to deliver, and an open watch to hold. What the
// same writes cost with one watch is taken off. The servers take turns, and the medians of
// the rounds count.
func (b *benchmark) deliveries(ctx context.Context) error {
	for _, streams := range []int{0, 50} {
		var all [2][]delivery
		for range *rounds {
			for i, at := range []*server{b.origin, b.relay} {
				d, err := b.delivery(ctx, at, streams)
				if err != nil {
					return err
				}
				all[i] = append(all[i], d)
				fmt.Fprintf(os.Stderr, "%s, %s: %.1f µs, %.0f %% of it encryption\n", at.name, connections(streams), d.perEvent, 100*d.encrypted)
			}
		}
		var medians [2]delivery
		var plain [2]float64
		for i, at := range []*server{b.origin, b.relay} {
			m := medianOf(all[i])
			medians[i], plain[i] = m, m.perEvent*(1-m.encrypted)
			b.say("| %s, %s | %.1f µs, %.1f without TLS | %.0f KiB | %s |", at.name, connections(streams), m.perEvent, plain[i], m.perWatch, m.arrived())
		}
		origin, relay := medians[0], medians[1]
		b.say("| ratio | **%.2f** (aim 0.25, bound 0.5), %.2f without TLS | **%.2f** (bound 0.33) | with one watch, p99 is %s later (bound 10 ms) |",
			relay.perEvent/origin.perEvent, plain[1]/plain[0], relay.perWatch/origin.perWatch, (relay.alone - origin.alone).Round(time.Millisecond/10))
	}
	return nil
}

// medianOf has the median of each figure, and the outcome of the round with the median
// cost.
func medianOf(all []delivery) delivery {
	middle := func(figure func(delivery) float64) float64 {
		sorted := slices.SortedFunc(slices.Values(all), func(x, y delivery) int { return cmp.Compare(figure(x), figure(y)) })
		return figure(sorted[len(sorted)/2])
	}
	cost := func(d delivery) float64 { return d.perEvent }
	m := all[slices.IndexFunc(all, func(d delivery) bool { return d.perEvent == middle(cost) })]
	m.encrypted = middle(func(d delivery) float64 { return d.encrypted })
	m.perWatch = middle(func(d delivery) float64 { return d.perWatch })
	m.alone = time.Duration(middle(func(d delivery) float64 { return float64(d.alone) }))
	return m
}

// load has more watches of all pods at the relay than the server can serve. The server must
// not notice them.
func (b *benchmark) load(ctx context.Context) error {
	for _, streams := range []int{0, 50} {
		alone, err := b.ofAllPods(ctx, b.relay, 1, streams)
		if err != nil {
			return err
		}
		o, err := b.ofAllPods(ctx, b.relay, *loaded, streams)
		if err != nil {
			return err
		}
		b.say("| relay, %d watches at %.0f updates/s, %s | %.1f µs | %.0f KiB | %s |", *loaded, *rate, connections(streams),
			float64(o.cpu.Microseconds())/float64(max(o.delivered, 1)), float64(o.memory)/float64(*loaded)/1024, o.arrived())
		b.say("| the server behind it, with %d watches and with one | ratio **%.2f** (bound 1.05) | | %.2f s and %.2f s of CPU |",
			*loaded, o.originCPU.Seconds()/alone.originCPU.Seconds(), o.originCPU.Seconds(), alone.originCPU.Seconds())
	}
	return nil
}

// stalled has one client more that never reads.
func (b *benchmark) stalled(ctx context.Context) error {
	version, err := b.writer.version(ctx, false)
	if err != nil {
		return err
	}
	end, err := openUnread(ctx, b.relay, podsPath+"?watch=true&resourceVersion="+version)
	if err != nil {
		return err
	}
	defer end()
	o, err := b.ofAllPods(ctx, b.relay, *watchers, 0)
	if err != nil {
		return err
	}
	b.say("| relay, %d watches beside one that is never read | | | %s |", *watchers, o.arrived())
	return nil
}

// initialEvents has clients ask for all pods at once.
func (b *benchmark) initialEvents(ctx context.Context) error {
	var each [2]float64
	for i, at := range []*server{b.origin, b.relay} {
		runtime.GC()
		steady := at.resident()
		if err := at.resetPeak(); err != nil {
			return err
		}
		cpu, err := at.cpu()
		if err != nil {
			return err
		}
		began := time.Now()
		w, err := open(ctx, at, audience{count: *initial, path: podsPath, query: func(int) url.Values {
			return url.Values{"sendInitialEvents": {"true"}, "resourceVersionMatch": {"NotOlderThan"}, "allowWatchBookmarks": {"true"}}
		}}, "")
		if err != nil {
			return err
		}
		objects := int64(*initial) * int64(len(b.writer.keys))
		w.await(ctx, objects+int64(*initial)) // a bookmark for each
		took := time.Since(began)
		after, err := at.cpu()
		if err != nil {
			w.close()
			return err
		}
		each[i] = float64((after - cpu).Microseconds()) / float64(objects)
		b.say("| %s, %d clients ask for the initial events of %d pods | %.1f µs for an object | peak %.2f × steady | %d of %d came in %.1f s |",
			at.name, *initial, len(b.writer.keys), each[i], float64(at.peak())/float64(steady), min(w.events.Load(), objects), objects, took.Seconds())
		w.close()
	}
	b.say("| ratio | **%.2f** (bound 0.33) | | |", each[1]/each[0])
	return nil
}

// nodeWatches has watches of one node's pods each: a write must cost as much as with ten.
func (b *benchmark) nodeWatches(ctx context.Context) error {
	names := distinct(b.writer.nodes)
	var perWrite [2]float64
	for i, count := range []int{10, *nodes} {
		a := audience{count: count, streams: 100, path: podsPath, query: func(i int) url.Values {
			node := fmt.Sprintf("node-without-pods-%d", i)
			if i < len(names) {
				node = names[i]
			}
			return url.Values{"fieldSelector": {"spec.nodeName=" + node}}
		}}
		o, err := b.round(ctx, b.relay, a, 5**updates, 100, false, 0)
		if err != nil {
			return err
		}
		perWrite[i] = float64(o.cpu.Microseconds()) / float64(5**updates)
		b.say("| relay, %d watches of one node each | %.0f µs for a write | %.0f KiB | %d closed |", count, perWrite[i], float64(o.memory)/float64(count)/1024, o.ended)
	}
	b.say("| ratio | **%.2f** (bound 2) | | |", perWrite[1]/perWrite[0])
	return nil
}

// crowd has very many watches of small objects.
func (b *benchmark) crowd(ctx context.Context) error {
	a := audience{count: *crowd, streams: 100, path: "/api/v1/namespaces/" + smallNamespace + "/configmaps", query: everything}
	const perSecond, seconds = 10, 10
	o, err := b.round(ctx, b.relay, a, perSecond*seconds, perSecond, true, int64(*crowd)*perSecond*seconds)
	if err != nil {
		return err
	}
	b.say("| relay, %d watches at %d small writes/s, %s | %.1f µs | %.0f KiB | %s (bound 1 s) |", *crowd, perSecond, connections(100),
		float64(o.cpu.Microseconds())/float64(max(o.delivered, 1)), float64(o.memory)/float64(*crowd)/1024, o.arrived())
	return nil
}

// reconnect has very many watches come back at once, as after a break of the network. All
// resume at the version that they had, and none may be refused.
func (b *benchmark) reconnect(ctx context.Context) error {
	a := audience{count: *crowd, streams: 100, path: "/api/v1/namespaces/" + smallNamespace + "/configmaps", query: everything}
	version, err := b.writer.version(ctx, true)
	if err != nil {
		return err
	}
	before, err := open(ctx, b.relay, a, version)
	if err != nil {
		return err
	}
	before.close()
	cpu, err := b.origin.cpu()
	if err != nil {
		return err
	}
	a.atOnce = true
	began := time.Now()
	again, err := open(ctx, b.relay, a, version)
	if err != nil {
		return err
	}
	defer again.close()
	took := time.Since(began)
	after, err := b.origin.cpu()
	if err != nil {
		return err
	}
	b.say("| relay, %d watches come back at once, %s | | | all are open after %.1f s, the server behind it computes for %.2f s |", *crowd, connections(100), took.Seconds(), (after - cpu).Seconds())
	return nil
}

func (o outcome) arrived() string {
	return fmt.Sprintf("%.1f %% delivered, %d closed, p50 %v, p99 %v", 100*float64(o.delivered)/float64(max(o.expected, 1)), o.ended, o.p50.Round(time.Millisecond), o.p99.Round(time.Millisecond))
}

func distinct(all []string) []string {
	seen := map[string]bool{}
	var found []string
	for _, s := range all {
		if s != "" && !seen[s] {
			seen[s] = true
			found = append(found, s)
		}
	}
	return found
}
