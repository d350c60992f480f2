package faults

import (
	"context"
	"math/rand/v2"
	"time"
)

// request is one request, stream or connection and what is decided about it.
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

// dice decides about one kind of fault in one request. Each has a generator of
// its own, so that no decision disturbs another.
type dice struct {
	*rand.Rand
	request *request
	kind    Kind
	chance  float64
	// thrown counts how often the fault came up.
	thrown int
}

// dice returns the random source of a kind; it is the same at each call.
func (r *request) dice(kind Kind) *dice { return r.diceOf(kind, r.number) }

func (r *request) diceOf(kind Kind, number int) *dice {
	d := &dice{request: r, kind: kind, chance: r.plan.mix[kind]}
	if d.chance > 0 {
		d.Rand = generator(r.plan.seed, r.stream, number, kind)
	}
	return d
}

// generator is the only source of chance here. The numbers of requests are close
// to each other, so all is scrambled before it becomes a state.
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

// comesUp throws the dice once.
func (d *dice) comesUp() bool {
	if d.Rand == nil || d.Float64() >= d.chance {
		return false
	}
	d.thrown++
	return true
}

// happens makes the fault that came up last happen, unless the plan spares it.
func (d *dice) happens(detail string) bool { return d.happensAs(d.thrown, detail) }

func (d *dice) happensAs(nth int, detail string) bool {
	r := d.request
	return r.plan.allows(Fault{
		Place:  Place{Stream: r.stream, Request: r.number, Kind: d.kind, Nth: nth},
		Of:     r.of,
		Detail: detail,
	})
}

// hits decides about a fault of the whole request that needs no more to be said.
func (r *request) hits(kind Kind) bool {
	d := r.dice(kind)
	return d.comesUp() && d.happens("")
}

// trouble decides about the kinds of failure that come in bursts. It returns the
// first that happens, and for how long the source wants to be left alone.
func (r *request) trouble(kinds ...Kind) (Kind, time.Duration) {
	for _, kind := range kinds {
		d := r.burst(kind)
		switch {
		case d == nil:
		case kind == BusyFor:
			if after := d.retryAfter(); d.happens(short(after)) {
				return kind, after
			}
		case d.happens(""):
			return kind, 0
		}
	}
	return "", 0
}

// burst finds the dice that say that the request is part of a burst; nil if none
// do. Whether one of the requests before began one is found by throwing their
// dice again: there is nothing to remember, and so nothing that requests under
// way at the same time could change.
func (r *request) burst(kind Kind) *dice {
	longest := r.plan.limits.Burst
	for back := range min(longest, r.number) {
		d := r.diceOf(kind, r.number-back)
		if d.comesUp() && d.IntN(longest) >= back {
			return d
		}
	}
	return nil
}

// delay makes the request wait, if so decided.
func (r *request) delay(ctx context.Context) error {
	return sleep(ctx, r.dice(Delay).pause())
}

// pause is for how long to wait, if at all.
func (d *dice) pause() time.Duration {
	if !d.comesUp() {
		return 0
	}
	wait := upTo(d.Rand, d.request.plan.limits.Delay)
	if !d.happens(short(wait)) {
		return 0
	}
	return wait
}
