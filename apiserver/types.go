package apiserver

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
)

// A State is one resource as gets, lists and watches see it: its objects, and what
// happened to them recently. A [Reader] serves it over HTTP. The embedded server has
// one for each resource; a program that has objects from elsewhere implements its own.
//
//   - Versions are numbers. Every change of an object gives it a greater one.
//   - Objects do not change; the caller may keep them, but not the slices.
//   - An error that is an API status is sent to the client. [ErrExpired] becomes the
//     status that fits the request. Any other error is returned by [Reader.Serve].
//   - Methods may be called by any number of goroutines, and return soon after ctx ends.
type State interface {
	// Get returns the object with this key, or nil. The reader never asks for an Exact
	// version.
	Get(ctx context.Context, key string, at At) (*Object, error)
	// List returns the objects of a namespace, or of all namespaces if it is empty.
	List(ctx context.Context, namespace string, at At) (Listing, error)
	// Watch opens a watch. [ErrExpired] means that the changes after the version are no
	// longer known.
	Watch(ctx context.Context, q WatchQuery) (Watch, error)
}

// At says which state of a resource is asked for.
type At struct {
	Match   Match
	Version int64
}

// Match says how [At.Version] is meant.
type Match uint8

const (
	// Latest asks for everything that was written before the request arrived.
	Latest Match = iota
	// NotOlder asks for the version or a later one; version 0 for any.
	NotOlder
	// Exact asks for the version itself.
	Exact
)

// A Listing is one state of a resource, or of one namespace of it.
type Listing struct {
	// Objects are in the order of their keys.
	Objects []*Object
	Version int64
}

// ErrExpired says that a version is too old to be read, or to be watched from.
var ErrExpired = errors.New("the version is no longer known")

// A Selection says which objects a client wants to see.
type Selection struct {
	// Namespace is empty for all.
	Namespace string
	// Labels, Fields and Shard are nil for all.
	Labels labels.Selector
	Fields fields.Selector
	Shard  *Shard
}

// A WatchQuery says how a watch begins.
type WatchQuery struct {
	Selection
	// Objects asks for the objects of the namespace first, of the state At. Otherwise
	// the watch begins with the changes after At.Version; version 0 means from now on. A
	// version that has not been reached is watched from when it is.
	Objects bool
	At      At
	// Wake receives when Next should be called: the watch sends to it, without waiting. It
	// has room for one. Others may send to it too.
	Wake chan<- struct{}
}

// A Watch is the place of one client in the changes of a resource. One goroutine uses it.
type Watch interface {
	// Objects are those that the watch begins with, and their version. It is called once,
	// before Next.
	Objects() Listing
	// Next returns the events since its last call, which may include some that the
	// selection does not select, and the version that they lead to. It does not wait: after
	// a call without events, [WatchQuery.Wake] receives. [io.EOF] ends the watch; any other
	// error is sent to the client first.
	Next() (events []*Event, version int64, err error)
	Close()
}

// An Event is one change of one object, or a gap. It must not be copied.
type Event struct {
	// Type is Added, Modified or Deleted; empty for a gap.
	Type watch.EventType
	// Version is the one that the event leads to.
	Version int64
	// Heard is when the change was made, or became known.
	Heard time.Time
	// Object is the object after the change; for a delete its last state, with the
	// version of the delete. Old is the one before, nil for a new object.
	Object, Old *Object
	// Gap is set if states between two versions are not known.
	Gap *Gap

	leaving leavingObject
}

// A Gap covers the versions after From, up to Event.Version. Only the states at both ends
// are known. A watch first sends the objects that leave the client's selection as deleted,
// at version From; then the new and changed objects, in the order of their versions; then a
// bookmark. A watch cannot begin inside a gap.
type Gap struct {
	From int64
	// Changes are the objects that differ: first those without New, then the others in
	// the order of the version of New.
	Changes []*GapChange
}

// A GapChange is an object that differs between the two ends of a [Gap]. Old or New is
// nil if the object did not exist there.
type GapChange struct {
	Old, New *Object

	leaving leavingObject
}
