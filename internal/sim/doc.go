// Package sim simulates the whole pipeline with many faults, in virtual time and by seed,
// and checks from recorded histories that every promise is kept.
//
// A day has a model server that is written, compacted, restarted and sometimes restored
// from an older state; a wire with the faults of package faults; a replica, or an informer
// of package cache; and readers and followers, some of them slow, some late, some gone
// early. At the end of the day the faults end, and after a while the copy must equal the
// server.
//
// A day with [Config.Sinks] has instead a process that ends, in good order or killed at
// any step, and begins again several times, with sinks that are slow, fail, are unreachable or
// lose their content. The commits of each sink are checked one by one: content and
// position are a state that the server had, and no state is missing unmarked or given
// twice.
//
// One seed is one day: [Run] with the same seed makes the same decisions. It returns the
// day's [Report]; its Violations are the broken promises.
package sim
