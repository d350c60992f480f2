package demo

import (
	"container/heap"
	"time"
)

// eventQueue has the planned actions of the simulation in order of time,
// and those of the same time in the order in which they were planned.
//
// Its clock moves only when an action runs, so that what an action reads or plans
// depends on nothing but the queue. Why not a timer for each: timers of the same
// time fire in any order, and then a seed would not reproduce a run.
type eventQueue struct {
	now     time.Time
	planned plans
	count   uint64
}

type plan struct {
	at    time.Time
	order uint64
	do    func()
}

func (a *eventQueue) after(d time.Duration, do func()) {
	a.count++
	heap.Push(&a.planned, plan{at: a.now.Add(d), order: a.count, do: do})
}

// next is the time of the next action.
func (a *eventQueue) next() (time.Time, bool) {
	if len(a.planned) == 0 {
		return time.Time{}, false
	}
	return a.planned[0].at, true
}

// step runs the next action if it is planned for that time or earlier, and reports
// whether it was.
func (a *eventQueue) step(until time.Time) bool {
	if at, ok := a.next(); !ok || at.After(until) {
		return false
	}
	p := heap.Pop(&a.planned).(plan)
	a.now = p.at
	p.do()
	return true
}

// postpone delays all actions, for example after the machine was suspended.
func (a *eventQueue) postpone(d time.Duration) {
	a.now = a.now.Add(d)
	for i := range a.planned {
		a.planned[i].at = a.planned[i].at.Add(d)
	}
}

type plans []plan

func (p plans) Len() int { return len(p) }
func (p plans) Less(i, j int) bool {
	if !p[i].at.Equal(p[j].at) {
		return p[i].at.Before(p[j].at)
	}
	return p[i].order < p[j].order
}
func (p plans) Swap(i, j int) { p[i], p[j] = p[j], p[i] }
func (p *plans) Push(x any)   { *p = append(*p, x.(plan)) }
func (p *plans) Pop() any {
	last := len(*p) - 1
	popped := (*p)[last]
	(*p)[last] = plan{}
	*p = (*p)[:last]
	return popped
}
