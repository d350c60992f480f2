package kube

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// listHead is what a list says besides its items.
type listHead struct {
	runtime.TypeMeta
	metav1.ListMeta
	// status is set if the answer is not a list but a Status.
	status *metav1.Status
	// items says that there was a field for items, if perhaps none in it.
	items bool
}

// listTaker is who takes the items that a list is cut into.
type listTaker interface {
	// item takes the next n bytes of the feed, one object, with its hold on the
	// feed's block.
	item(f *feed, n int)
	// tooLong is told of an item that was skipped because of its size; start is
	// how it begins, valid only during the call.
	tooLong(start []byte, size, at int64)
	// forget everything taken so far.
	forget()
}

const (
	// maxHead bounds what is kept of a list besides its items: kind, metadata, or a
	// Status in its stead.
	maxHead = 1 << 20
	// peekSize is how much of an object that is too long is looked at to find its
	// name, which comes early, but perhaps behind the managed fields.
	peekSize = 64 << 10
)

// readList cuts a list into its items as it arrives.
func readList(f *feed, m media, limit int, t listTaker) (listHead, error) {
	if m == mediaProtobuf {
		return readProtobufList(f, limit, t)
	}
	return readJSONList(f, limit, t)
}
