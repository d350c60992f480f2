package tarn

import (
	"maps"
	"slices"
)

// refusedObjects are those whose present state a sink does not have, because it named them
// in an [ObjectErrors]. An object leaves when a later state of it is committed.
type refusedObjects map[Key]BadObject

// afterCommit returns what is refused after a commit when the sink refused some of its objects.
func (r refusedObjects) afterCommit(whole bool, last func(Key) (Version, bool), some ObjectErrors) refusedObjects {
	next := refusedObjects{}
	for key, bad := range r {
		if _, changed := last(key); !changed && !whole {
			next[key] = bad
		}
	}
	for _, bad := range some {
		if version, known := last(bad.Key); !known || bad.Version == "" || bad.Version == version {
			next[bad.Key] = bad // otherwise a later state in the same commit was taken
		}
	}
	return next
}

// lastVersions finds the last version that a queue has of a key.
func (q *sinkQueue[T]) lastVersions() func(Key) (Version, bool) {
	all := make(map[Key]Version, len(q.changes))
	for i := range q.changes {
		all[q.changes[i].Key] = q.changes[i].Version
	}
	return func(key Key) (Version, bool) {
		version, known := all[key]
		return version, known
	}
}

// shownRefused is how many of them Health names.
const shownRefused = 100

// list names the first of them, by key.
func (r refusedObjects) list() (some []BadObject, count int) {
	for _, key := range slices.Sorted(maps.Keys(r)) {
		if len(some) == shownRefused {
			break
		}
		some = append(some, r[key])
	}
	return some, len(r)
}
