package faults

import (
	"context"
	"math/rand/v2"
	"time"
)

// request is one request, stream or connection, for which faults are drawn.
type request struct {
	plan   *Plan
	stream string
	number int
	// of describes the request, for the history.
	of string
}

// request numbers the next request of a name.
func (p *Plan) request(stream, of string) *request {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.numbers[stream]++
	return &request{plan: p, stream: stream, number: p.numbers[stream], of: of}
}

// injector draws and injects one kind of fault in one request. Each injector has
// its own random generator, so that no decision changes another.
type injector struct {
	*rand.Rand
	request *request
	kind    Kind
	chance  float64
	// drawn counts the draws that gave a fault.
	drawn int
}

// injector returns the injector of a kind; it draws the same after each call.
func (r *request) injector(kind Kind) *injector { return r.injectorOf(kind, r.number) }

func (r *request) injectorOf(kind Kind, number int) *injector {
	d := &injector{request: r, kind: kind, chance: r.plan.mix[kind]}
	if d.chance > 0 {
		d.Rand = generator(r.plan.seed, r.stream, number, kind)
	}
	return d
}

// generator is the only source of randomness here. The numbers of requests are
// close to each other, so everything is scrambled before it becomes a state.
func generator(seed uint64, stream string, number int, kind Kind) *rand.Rand {
	// FNV-1a, since hash/maphash gives other values in each process.
	place := uint64(14695981039346656037)
	for _, s := range [...]string{stream, "\x00", string(kind)} {
		for i := range len(s) {
			place = (place ^ uint64(s[i])) * 1099511628211
		}
	}
	return rand.New(rand.NewPCG(scramble(seed^scramble(place)), scramble(place^scramble(uint64(number)))))
}

// draw decides once whether the fault is due. A fault that was drawn happens only
// if inject then returns true.
func (d *injector) draw() bool {
	if d.Rand == nil || d.Float64() >= d.chance {
		return false
	}
	d.drawn++
	return true
}

// inject records the fault that was drawn last. It returns false if the plan
// suppresses it.
func (d *injector) inject(detail string) bool { return d.injectNth(d.drawn, detail) }

func (d *injector) injectNth(nth int, detail string) bool {
	r := d.request
	return r.plan.allows(Fault{
		Place:  Place{Stream: r.stream, Request: r.number, Kind: d.kind, Nth: nth},
		Of:     r.of,
		Detail: detail,
	})
}

// injects draws and injects a fault of the whole request that has no parameters.
func (r *request) injects(kind Kind) bool {
	d := r.injector(kind)
	return d.draw() && d.inject("")
}

// failInBurst draws the kinds of failure that come in bursts. It returns the first
// that happens, and the delay that the source requests.
func (r *request) failInBurst(kinds ...Kind) (Kind, time.Duration) {
	for _, kind := range kinds {
		d := r.burst(kind)
		switch {
		case d == nil:
		case kind == BusyFor:
			if after := d.retryAfter(); d.inject(short(after)) {
				return kind, after
			}
		case d.inject(""):
			return kind, 0
		}
	}
	return "", 0
}

// burst returns the injector of the burst that this request belongs to, nil if it
// belongs to none. To find out whether an earlier request began a burst, it draws
// for that request again: no state is kept that concurrent requests could change.
func (r *request) burst(kind Kind) *injector {
	longest := r.plan.limits.Burst
	for back := range min(longest, r.number) {
		d := r.injectorOf(kind, r.number-back)
		if d.draw() && d.IntN(longest) >= back {
			return d
		}
	}
	return nil
}

// delay makes the request wait, if a delay is drawn.
func (r *request) delay(ctx context.Context) error {
	return sleep(ctx, r.injector(Delay).pause())
}

// pause draws how long to wait, 0 for not at all.
func (d *injector) pause() time.Duration {
	if !d.draw() {
		return 0
	}
	wait := upTo(d.Rand, d.request.plan.limits.Delay)
	if !d.inject(short(wait)) {
		return 0
	}
	return wait
}
