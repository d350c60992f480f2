package kube

import (
	"bytes"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// readProtobufList cuts a protobuf list: a runtime.Unknown whose raw field is a
// message with the list's metadata as field 1 and the items as field 2, as in every
// list type.
//
// Servers write the kind first, and it distinguishes a Status from a list. A raw
// field before the kind is read as a list; if the kind says otherwise later, the
// head shows it.
func readProtobufList(f *bodyBuffer, limit int, t itemSink) (head listHead, err error) {
	if err := f.need(len(magic)); err != nil {
		return head, unexpected(err)
	}
	if !bytes.Equal(f.window()[:len(magic)], magic) {
		return head, f.malformed("%q instead of a Kubernetes protobuf object", f.window()[:len(magic)])
	}
	f.at += len(magic)
	for {
		if f.at == f.end {
			switch err := f.fill(1); {
			case err == io.EOF && !head.items && head.status == nil:
				return head, io.ErrUnexpectedEOF
			case err == io.EOF:
				return head, nil
			case err != nil:
				return head, err
			}
		}
		tag, err := f.uvarint()
		if err != nil {
			return head, unexpected(err)
		}
		switch {
		case tag == 1<<3|wireBytes:
			raw, err := f.small()
			if err != nil {
				return head, err
			}
			if err := head.TypeMeta.Unmarshal(raw); err != nil {
				return head, f.malformed("the kind cannot be read: %v", err)
			}
		case tag == 2<<3|wireBytes && head.Kind == "Status":
			raw, err := f.small()
			if err != nil {
				return head, err
			}
			head.status = &metav1.Status{}
			if err := head.status.Unmarshal(raw); err != nil {
				return head, f.malformed("a Status cannot be read: %v", err)
			}
		case tag == 2<<3|wireBytes:
			if head.items {
				// As with any field that is given twice, the last one counts.
				t.forget()
				head.ListMeta = metav1.ListMeta{}
			}
			head.items = true
			if err := f.protobufItems(&head, limit, t); err != nil {
				return head, unexpected(err)
			}
		case tag>>3 == 1, tag>>3 == 2, tag>>3 == 0:
			return head, f.malformed("field %d of the envelope has wire type %d", tag>>3, tag&7)
		default:
			if err := f.skipField(tag); err != nil {
				return head, unexpected(err)
			}
		}
	}
}

// small reads the value of a field that is needed as a whole.
func (f *bodyBuffer) small() ([]byte, error) {
	n, err := f.uvarint()
	if err != nil {
		return nil, unexpected(err)
	}
	if n > maxHead {
		return nil, f.malformed("a head of %d bytes", n)
	}
	if err := f.need(int(n)); err != nil {
		return nil, unexpected(err)
	}
	return f.take(int(n)), nil
}

// protobufItems reads the list message.
func (f *bodyBuffer) protobufItems(head *listHead, limit int, t itemSink) error {
	size, err := f.uvarint()
	if err != nil {
		return err
	}
	if size > 1<<62 {
		return f.malformed("a list of %d bytes", size)
	}
	for end := f.offset() + int64(size); f.offset() != end; {
		if f.offset() > end {
			return f.malformed("a field is longer than the list")
		}
		tag, err := f.uvarint()
		if err != nil {
			return err
		}
		switch {
		case tag == 2<<3|wireBytes:
			n, err := f.uvarint()
			if err != nil {
				return err
			}
			if left := end - f.offset(); left < 0 || n > uint64(left) {
				return f.malformed("an item of %d bytes in a list that has %d left", n, left)
			}
			if err := f.protobufItem(int64(n), limit, t); err != nil {
				return err
			}
		case tag == 1<<3|wireBytes:
			raw, err := f.small()
			if err != nil {
				return err
			}
			head.shard = protobufEcho(raw)
			if err := head.ListMeta.Unmarshal(raw); err != nil {
				return f.malformed("the metadata cannot be read: %v", err)
			}
		case tag>>3 <= 2:
			return f.malformed("field %d of the list has wire type %d", tag>>3, tag&7)
		default:
			if err := f.skipField(tag); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *bodyBuffer) protobufItem(n int64, limit int, t itemSink) error {
	if n <= int64(limit) {
		if err := f.need(int(n)); err != nil {
			return err
		}
		t.item(f, int(n))
		return nil
	}
	at := f.offset()
	if err := f.need(int(min(n, excerptSize))); err != nil {
		return err
	}
	start := bytes.Clone(f.window()[:min(n, excerptSize)])
	if err := f.skip(n); err != nil {
		return err
	}
	t.tooLong(start, n, at)
	return nil
}
