package faults

import "slices"

// Kind names a fault. The comment of each kind says what injects it (S a [Source],
// T a [Transport], C the connections of [Listener] and [Dial]). A chance in a [Mix]
// is per request, per stream or connection, or per event or item.
type Kind string

// Requests that get no answer, or a bad one. Refuse, Busy, BusyFor, Internal and
// Fail come in bursts of up to [Limits.Burst] requests in a row.
const (
	// Refuse: the connection is refused (S, T, C). A listener closes it at once
	// instead.
	Refuse Kind = "refuse"
	// Expire: the requested version is gone, 410 (S, T). S: only where the request
	// names one.
	Expire Kind = "expire"
	// TooNew: the requested version has not been reached (S). Only for lists and
	// for streams with initial events; other watches from there are just silent.
	TooNew Kind = "too new"
	// Busy is 429 without Retry-After, BusyFor with it (S, T).
	Busy    Kind = "busy"
	BusyFor Kind = "busy for"
	// Internal: the source failed inside, 500 (S, T).
	Internal Kind = "internal"
	// Fail: any other failure, 502 to 504 (S, T).
	Fail Kind = "fail"
	// NoWatchList: the source cannot stream its collection (S).
	NoWatchList Kind = "no watch list"
	// Hang: there is no answer to a list, or no header of a response (S, T). It
	// lasts until the context, the day or [Limits.Hang] ends.
	Hang Kind = "hang"
	// Delay: the answer is late (S, T), or the first byte (C).
	Delay Kind = "delay"
)

// Lists (S), by request.
const (
	// ExpireToken: the continue token expires in mid-pagination.
	ExpireToken Kind = "expire token"
	// NoList: the answer is not a list, [tarn.ErrNoList].
	NoList Kind = "no list"
	// NoVersion: the answer is an empty page without a version, as an empty JSON
	// object decodes to.
	NoVersion Kind = "no version"
	// CutList: the connection is lost after some items. The caller has taken those
	// that were streamed; see [tarn.ListStreamer].
	CutList Kind = "cut list"
)

// How a stream, body or connection ends, by stream.
const (
	// Stall: it stays open and silent from some point on (S, T, C).
	Stall Kind = "stall"
	// CutEnd, CutExpire, CutBusy, CutInternal and CutFail end a watch early (S):
	// in good order, or with an error of that reason.
	CutEnd      Kind = "cut: end"
	CutExpire   Kind = "cut: expire"
	CutBusy     Kind = "cut: busy"
	CutInternal Kind = "cut: internal"
	CutFail     Kind = "cut: fail"
	// Reset: the connection is reset at some byte (T, C).
	Reset Kind = "reset"
	// Truncate: it ends at some byte as if that were all (T, C).
	Truncate Kind = "truncate"
	// Garble: some bytes are not what was sent (T, C).
	Garble Kind = "garble"
)

// Events (S), by event.
const (
	// Duplicate: the event comes twice.
	Duplicate Kind = "duplicate"
	// Replay: the last events of the stream come again, in their order.
	Replay Kind = "replay"
	// Reorder: the event comes after the next one, which is of another key.
	Reorder Kind = "reorder"
	// Lag: the event, and what follows it, is late.
	Lag Kind = "lag"
	// DropBookmark: a bookmark does not come.
	DropBookmark Kind = "drop bookmark"
	// DropEnd: the bookmark that ends the initial events does not come.
	DropEnd Kind = "drop end"
	// Endless: the initial events come again and again instead of their end, until
	// the day or the watch's timeout ends.
	Endless Kind = "endless"
	// Undecodable: nothing of the event can be read.
	Undecodable Kind = "undecodable"
)

// Objects (S), by event and by list item.
const (
	// Bad: the object cannot be decoded, but its key is known.
	Bad Kind = "bad"
	// Corrupt: the object is what one of [SourceOptions.Corrupt] makes of it.
	Corrupt Kind = "corrupt"
	// Oversize: the object is what [SourceOptions.Oversize] makes of it.
	Oversize Kind = "oversize"
)

// The server itself, by call of [Plan.Rewind].
const (
	// Rewind: it goes back by some writes, as if restored from a backup.
	Rewind Kind = "rewind"
	// Wipe: it goes back to its beginning.
	Wipe Kind = "wipe"
)

// Kinds returns all kinds there are, always in the same order.
func Kinds() []Kind { return slices.Clone(kinds) }

var kinds = []Kind{
	Refuse, Expire, TooNew, Busy, BusyFor, Internal, Fail, NoWatchList, Hang, Delay,
	ExpireToken, NoList, NoVersion,
	Stall, CutEnd, CutExpire, CutBusy, CutInternal, CutFail, Reset, Truncate, Garble,
	Duplicate, Replay, Reorder, Lag, DropBookmark, DropEnd, Endless, Undecodable,
	Bad, Corrupt, Oversize,
	Rewind, Wipe,
	CutList, // the last one: the mix of a day is drawn in this order
}
