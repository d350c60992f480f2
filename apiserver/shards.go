package apiserver

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// A Shard is a part of the objects, chosen by the hash of one field of their metadata, as
// in the parameter shardSelector of lists and watches (KEP-5866). A hash has 64 bits.
type Shard struct {
	// Field is "object.metadata.uid" or "object.metadata.namespace".
	Field string
	// Ranges are those of the hashes; an object in one of them belongs to the shard.
	Ranges []HashRange
	text   string
}

// A HashRange has the hashes from First to Last, both included.
type HashRange struct{ First, Last uint64 }

// The fields that a [Shard] may be chosen by.
const (
	ShardByUID       = "object.metadata.uid"
	ShardByNamespace = "object.metadata.namespace"
)

var shardRange = regexp.MustCompile(`^shardRange\(\s*([a-zA-Z.]+)\s*,\s*['"](0[xX][0-9a-fA-F]+)['"]\s*,\s*['"](0[xX][0-9a-fA-F]+)['"]\s*\)$`)

// mostRanges bounds a shard selector.
const mostRanges = 256

// parseShard reads a shard selector: one call of shardRange, or several with || between
// them.
func parseShard(text string) (*Shard, error) {
	s := &Shard{text: text}
	calls := strings.Split(text, "||")
	if len(calls) > mostRanges {
		return nil, fmt.Errorf("it has %d ranges, and at most %d are allowed", len(calls), mostRanges)
	}
	for _, call := range calls {
		parts := shardRange.FindStringSubmatch(strings.TrimSpace(call))
		if parts == nil {
			return nil, fmt.Errorf("%q is not shardRange(object.metadata.uid, '0x…', '0x…')", strings.TrimSpace(call))
		}
		field := parts[1]
		switch {
		case field != ShardByUID && field != ShardByNamespace:
			return nil, fmt.Errorf("the field %q is neither %s nor %s", field, ShardByUID, ShardByNamespace)
		case s.Field != "" && s.Field != field:
			return nil, fmt.Errorf("it has ranges of both %s and %s", s.Field, field)
		}
		r, err := parseRange(parts[2], parts[3])
		if err != nil {
			return nil, err
		}
		s.Field, s.Ranges = field, append(s.Ranges, r)
	}
	return s, nil
}

// parseRange reads a range whose end is not part of it. The largest end is 2^64.
func parseRange(start, end string) (r HashRange, err error) {
	first, pastFirst, err := parseHash(start)
	if err != nil {
		return r, err
	}
	next, pastNext, err := parseHash(end)
	if err != nil {
		return r, err
	}
	if pastFirst || !pastNext && next <= first {
		return r, fmt.Errorf("the range from %s to %s is empty", start, end)
	}
	return HashRange{First: first, Last: next - 1}, nil // 2^64 is read as 0, and wraps
}

// parseHash reads a bound; past says that it is 2^64.
func parseHash(text string) (n uint64, past bool, err error) {
	digits := strings.TrimLeft(text[2:], "0")
	if digits == "1"+strings.Repeat("0", 16) {
		return 0, true, nil
	}
	if len(digits) > 16 {
		return 0, false, fmt.Errorf("%s is more than 2^64", text)
	}
	for _, c := range strings.ToLower(digits) {
		n = n<<4 | uint64(strings.IndexRune("0123456789abcdef", c))
	}
	return n, false, nil
}

// has says whether an object belongs to the shard.
func (s *Shard) has(e *Object) bool {
	hash := e.ShardHash(s.Field)
	for _, r := range s.Ranges {
		if r.First <= hash && hash <= r.Last {
			return true
		}
	}
	return false
}

// ShardHash is the hash by which an object belongs to shards of a field.
func (e *Object) ShardHash(field string) uint64 {
	value := string(e.uid)
	if field == ShardByNamespace {
		value = e.namespace()
	}
	hash, _, _ := parseHash("0x" + hashField(value)) // it is always 16 digits
	return hash
}

// parseShardQuery parses the shardSelector of a list or watch. An empty text selects no
// shard, and the result is nil.
func parseShardQuery(text string) (*Shard, error) {
	if text == "" {
		return nil, nil
	}
	s, err := parseShard(text)
	if err == nil && !knowsShards {
		err = errors.New("this program was built with a version of Kubernetes' libraries that has no shards")
	}
	if err != nil {
		return nil, apierrors.NewBadRequest("invalid shardSelector: " + err.Error())
	}
	return s, nil
}
