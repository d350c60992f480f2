// Package faults injects faults by seed, so that a test can run a thousand bad days and repeat any one of them.
//
// A [Plan] decides about faults; a wrapper injects them:
//
//   - [Source] has faults of a collection: it refuses, expires, stalls, repeats,
//     drops and reorders;
//   - [Transport] has faults of an HTTP round tripper;
//   - [Listener] and [Dial] have faults of connections;
//   - [Plan.Rewind] says when a model server goes back in time.
//
// [Random] draws from its seed which faults there are and how often; [New] takes a
// [Mix] of them. [Plan.Until] or [Plan.End] ends the day. After that nothing
// fails, and a test can check that the code under test has recovered.
// [Plan.History] lists what happened.
//
// # One seed, one day
//
// Every decision depends on the seed, the name of the wrapper, the number of the
// request within it (and of the event or byte within that) and the kind of the
// fault, and on nothing else: neither on the other requests that are under way,
// nor on which other kinds are in the mix. So a program that makes the same
// requests meets the same faults. A kind can be taken out of a failing day, or a
// single fault suppressed with [Plan.Suppress], and the other faults stay the same.
//
// All waits use package time, so that they are virtual under testing/synctest.
// Make the plan inside of the bubble.
//
// # What can be recovered from
//
// The faults are those of an honest but unlucky source: order within a key is
// kept, a swap of two keys is never torn apart by a lost connection, and a
// repetition ends in the state that it began with. An object that was corrupted or
// could not be decoded is lost until its source sends it again.
//
// A server that went back in time is not a fault of the connection, so no wrapper
// can inject it. It is hard to detect because such a server sends nothing: a
// watch from a version that it has not reached is neither refused nor expired but
// silent, as with a real kube-apiserver. A model server that is rewound should do
// the same.
package faults
