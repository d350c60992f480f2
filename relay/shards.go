package relay

import (
	"math/bits"

	"github.com/tarnproject/tarn/apiserver"
)

// hashes are the hashes that begin with some bits: a range whose size is a power of two. A
// shard is covered by such ranges, so that an event finds the watches of its shard by one
// lookup for each size, however many shards there are.
type hashes struct {
	begin uint64
	bits  uint8
}

// shardBits is the length of the longest beginning that is distinguished. Shards that end
// between two such ranges are woken for events of their neighbours now and then, and send
// nothing. A sixteenth of a thousandth of the objects is about what a woken watch costs.
const shardBits = 16

// shardTopics cover a shard. A half, a quarter and so on is one topic; any other range is
// at most 30.
func shardTopics(s *apiserver.Shard) []topic {
	var topics []topic
	seen := map[topic]bool{}
	for _, r := range s.Ranges {
		const shift = 64 - shardBits
		for first, end := r.First>>shift, r.Last>>shift+1; first < end; {
			size := bits.TrailingZeros64(first | 1<<shardBits)
			for first+1<<size > end {
				size--
			}
			t := topic{sort: ofShard, text: s.Field, hashes: hashes{begin: first << shift, bits: uint8(shardBits - size)}}
			if first += 1 << size; !seen[t] {
				seen[t] = true
				topics = append(topics, t)
			}
		}
	}
	return topics
}

// wakeShards wakes the watches of the shards that an object may belong to.
func (w *watchers) wakeShards(o Object, place int) {
	for _, field := range []string{apiserver.ShardByUID, apiserver.ShardByNamespace} {
		hash := o.ShardHash(field)
		for n := range uint8(shardBits + 1) {
			w.wake(topic{sort: ofShard, text: field, hashes: hashes{begin: hash &^ (^uint64(0) >> n), bits: n}}, place)
		}
	}
}
