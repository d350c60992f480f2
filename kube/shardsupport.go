package kube

import (
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// shardSupport remembers what servers do with the parameter shardSelector. There may be several
// behind one client, see [Endpoints]. The one that answered last is likely to answer next.
type shardSupport struct {
	mu    sync.Mutex
	last  string
	known map[shardSupportKey]shardAnswer
}

type shardSupportKey struct {
	host     string
	resource schema.GroupVersionResource
}

// shardParameter is that of lists and watches. It is set by its name, because versions of
// apimachinery before 0.37 do not have it.
const shardParameter = "shardSelector"

// shardAnswer is what a server does with a shard selector.
type shardAnswer uint8

const (
	shardsUnknown shardAnswer = iota
	// shardsRefused: the request fails.
	shardsRefused
	// shardsIgnored: the answer has all objects.
	shardsIgnored
	// shardsServed: the answer echoes the selector, and has the objects of the shard.
	shardsServed
)

// answered records which server has answered.
func (s *shardSupport) answered(host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = host
}

// of is what is known of the server that answered last.
func (s *shardSupport) of(resource schema.GroupVersionResource) shardAnswer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known[shardSupportKey{s.last, resource}]
}

// learn records what the server that answered last does.
func (s *shardSupport) learn(resource schema.GroupVersionResource, a shardAnswer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = map[shardSupportKey]shardAnswer{}
	}
	s.known[shardSupportKey{s.last, resource}] = a
}

// disprove returns what to call when the server that answered last turns out to send objects
// of other shards.
func (s *shardSupport) disprove(resource schema.GroupVersionResource) func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := shardSupportKey{s.last, resource}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.known[key] = shardsIgnored // there is a map: the server was known to select
	}
}

// refusesShards reports whether an error may be due to the selector.
func refusesShards(err error) bool { return apierrors.IsBadRequest(err) || apierrors.IsInvalid(err) }

// protobufEcho is the selector in the metadata of a protobuf list: field 1 of field 5.
// apimachinery has it from 0.37 on; older versions are supported too.
func protobufEcho(listMeta []byte) (selector string) {
	fields(listMeta, func(f protoField) {
		if f.number == 5 {
			fields(f.data, func(f protoField) {
				if f.number == 1 {
					selector = string(f.data)
				}
			})
		}
	})
	return selector
}

// jsonEcho is the same in JSON.
func jsonEcho(listMeta []byte) (selector string) {
	jsonFields(listMeta, func(name string, value []byte) {
		if name == "shardInfo" {
			jsonFields(value, func(name string, value []byte) {
				if name == "selector" {
					selector = jsonText(value)
				}
			})
		}
	})
	return selector
}
