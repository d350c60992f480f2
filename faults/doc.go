// Package faults injects faults by seed, so that a test can run a thousand bad days and repeat any one of them.
//
// A [Plan] decides about faults; a wrapper injects them:
//
//   - [Source] misbehaves as a collection: it refuses, expires, stalls, repeats,
//     forgets, and mixes things up;
//   - [Transport] misbehaves as an HTTP round tripper;
//   - [Listener] and [Dial] misbehave as connections;
//   - [Plan.Rewind] tells a model server when to go back in time.
//
// [Day] draws from its seed which faults there are and how often; [New] takes a
// [Mix] that says so. [Plan.Until] or [Plan.End] ends the day, after which all
// goes well and a test can check that whatever is tested came round.
// [Plan.History] tells what happened.
//
// # One seed, one day
//
// Every decision depends on the seed, the name of the wrapper, the number of the
// request within it (and of the event or byte within that) and the kind of the
// fault, and on nothing else: neither on the other requests that are under way,
// nor on which other kinds are in the mix. So a program that makes the same
// requests lives the same day, and a kind can be taken out of a failing day, or a
// single fault spared with [Plan.Spare], without making another day of it.
//
// All waits use package time, so that they are virtual under testing/synctest.
// Make the plan inside of the bubble.
//
// # What can be recovered from
//
// The faults are those of an honest but unlucky source: order within a key is
// kept, a swap of two keys is never torn apart by a lost connection, and a
// repetition ends in the state that it began with. An object that was spoiled or
// could not be decoded is lost until its source tells of it again.
//
// A server that went back in time is not a fault of the wire, and no wrapper can
// play it. What makes it hard is not that it says something wrong but that it
// says nothing: a watch from a version which the server has not reached is
// neither refused nor expired, it stays silent, as that of a real kube-apiserver
// does. A model server that is rewound should do the same.
package faults
