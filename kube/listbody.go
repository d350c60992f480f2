package kube

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// listHead is everything in a list besides its items.
type listHead struct {
	runtime.TypeMeta
	metav1.ListMeta
	// status is set if the answer is not a list but a Status.
	status *metav1.Status
	// items says that the answer has a field for items, even if it is empty.
	items bool
	// shard is the shard selector that the server says it has used.
	shard string
}

// itemSink receives the items of a list.
type itemSink interface {
	// foreignStart reports whether the item that begins with start, in JSON, is not
	// wanted, as far as start tells. Such an item is skipped: the first seen bytes end
	// within its metadata, outside of strings, so that nobody has to follow them again.
	foreignStart(start []byte) (seen int, foreign bool)
	// item takes the next n bytes of the body, one object, and holds the block.
	item(f *bodyBuffer, n int)
	// tooLong reports an item that was skipped because of its size; start is how it
	// begins, valid only during the call.
	tooLong(start []byte, size, at int64)
	// forget drops everything received so far.
	forget()
}

const (
	// maxHead bounds what is kept of a list besides its items: kind, metadata, or a
	// Status instead of a list.
	maxHead = 1 << 20
	// excerptSize is how much of a too long object is searched for its name, which
	// comes early, but perhaps after the managed fields.
	excerptSize = 64 << 10
)

// readList cuts a list into its items as it arrives.
func readList(f *bodyBuffer, m media, limit int, t itemSink) (listHead, error) {
	if m == mediaProtobuf {
		return readProtobufList(f, limit, t)
	}
	return readJSONList(f, limit, t)
}
