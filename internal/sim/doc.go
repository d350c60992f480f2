// Package sim runs the whole pipeline through bad days, in virtual time and by
// seed, and checks from recorded histories that every promise was kept.
//
// A day has a model server that is written, compacted, restarted and now and then
// restored from an older state; a wire between, which misbehaves as package
// faults says; a replica, or an informer of package cache; and those who read and
// follow it, some of them slow, some late, some gone early. When the day is over
// the troubles end, and a while later the copy must equal the server.
//
// A day with [Config.Sinks] has instead a process that ends, in good order or killed at
// any step, and begins again several times, with sinks that are slow, fail, are away or
// lose what they held. What each sink was given is judged commit by commit: content and
// position are a state that the server had, and no state is missing unmarked or given
// twice.
//
// One seed is one day: [Run] with the same seed makes the same decisions. What it
// returns is the day's [Report]; its Violations are the promises broken.
package sim
