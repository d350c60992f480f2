package kube

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tarnproject/tarn"
)

// crumbs reads at most n bytes at a time.
type crumbs struct {
	in io.Reader
	n  int
}

func (c crumbs) Read(p []byte) (int, error) { return c.in.Read(p[:min(len(p), c.n)]) }

// taken is the result of cutting a list.
type taken struct {
	items [][]byte
	long  int
}

func (t *taken) item(f *bodyBuffer, n int)            { t.items = append(t.items, bytes.Clone(f.take(n))) }
func (t *taken) tooLong(start []byte, size, at int64) { t.long++ }
func (t *taken) foreignStart([]byte) (int, bool)      { return 0, false }
func (t *taken) forget()                              { *t = taken{} }

func cutList(body []byte, m media, limit, piece int) (taken, listHead, error) {
	f := newBodyBuffer(crumbs{bytes.NewReader(body), piece}, firstBlock)
	defer f.close()
	var t taken
	head, err := readList(f, m, limit, &t)
	return t, head, err
}

// Whatever arrives, and in whatever pieces, a list is cut the same way; and where
// the stock decoder sees a list, we see the same items.
func FuzzList(f *testing.F) {
	for m, contentType := range medias {
		for _, n := range []int{0, 1, 3} {
			f.Add(uint8(m), podList(f, contentType, newPods(n), "9"), uint16(7))
		}
	}
	for _, s := range []string{`{"items":[1,"a\"",null,[],{"a":"\\"}]}`, `{"items":[{}],"metadata":{"continue":"x"}}`, `{"a":"\u00`, `{"items":[{"x":"` + "\\", "\x00"} {
		f.Add(uint8(mediaJSON), []byte(s), uint16(1))
	}
	f.Add(uint8(mediaProtobuf), []byte("k8s\x00\x12\x06\x12\x02\x0a\x00\x1a\x00"), uint16(1))
	f.Fuzz(func(t *testing.T, kind uint8, body []byte, piece uint16) {
		m := media(kind % 2)
		whole, head, err := cutList(body, m, DefaultMaxItem, len(body)+1)
		pieces, _, pieceErr := cutList(body, m, DefaultMaxItem, int(piece)%100+1)
		if (err == nil) != (pieceErr == nil) || fmt.Sprint(whole.items) != fmt.Sprint(pieces.items) {
			t.Fatalf("whole: %q, %v; in pieces: %q, %v", whole.items, err, pieces.items, pieceErr)
		}
		short, _, shortErr := cutList(body, m, 10, int(piece)%100+1)
		if (err == nil) != (shortErr == nil) && len(body) < maxHead {
			t.Fatalf("%v; with a limit %v", err, shortErr)
		}
		if err == nil && len(short.items)+short.long != len(whole.items) {
			t.Fatalf("%d items; with a limit %d, and %d too long", len(whole.items), len(short.items), short.long)
		}
		items, ok := stockItems(m, body)
		if !ok || head.Kind == "Status" {
			return
		}
		if err != nil {
			t.Fatalf("the stock decoder sees %d items, we: %v", len(items), err)
		}
		if fmt.Sprint(items) != fmt.Sprint(whole.items) {
			t.Fatalf("the stock decoder sees %q, we %q", items, whole.items)
		}
	})
}

// stockItems are the items of a list that is surely valid.
func stockItems(m media, body []byte) (items [][]byte, ok bool) {
	if m == mediaJSON {
		d := json.NewDecoder(bytes.NewReader(body))
		if t, err := d.Token(); err != nil || t != json.Delim('{') {
			return nil, false
		}
		seen := map[string]json.RawMessage{}
		for d.More() {
			name, err := d.Token()
			var value json.RawMessage
			if err != nil || d.Decode(&value) != nil {
				return nil, false
			}
			if _, twice := seen[name.(string)]; twice {
				return nil, false
			}
			seen[name.(string)] = value
		}
		var head struct {
			runtime.TypeMeta
			metav1.ListMeta `json:"metadata"`
		}
		var raw []json.RawMessage
		if !json.Valid(body) || json.Unmarshal(seen["items"], &raw) != nil || json.Unmarshal(body, &head) != nil {
			return nil, false
		}
		for name := range seen {
			if name != "items" && len(seen[name]) > maxHead/2 {
				return nil, false
			}
		}
		for _, item := range raw {
			items = append(items, item)
		}
		return items, true
	}
	if !bytes.HasPrefix(body, magic) {
		return nil, false
	}
	var envelope runtime.Unknown
	if envelope.Unmarshal(body[len(magic):]) != nil || envelope.Raw == nil {
		return nil, false
	}
	lists := 0
	fields(body[len(magic):], func(f protoField) {
		if f.number == 2 {
			lists++
		}
	})
	var list rawList
	if !list.unmarshal(envelope.Raw) || oddFields(body[len(magic):]) || lists != 1 {
		return nil, false
	}
	return list.items, true
}

// rawList is a list by our own walk over a message in memory, checked against the
// stock decoder of a list whose items are of a type that takes anything.
type rawList struct{ items [][]byte }

func (l *rawList) unmarshal(raw []byte) bool {
	var stock corev1.PodList
	if stock.Unmarshal(raw) != nil || oddFields(raw) {
		return false
	}
	fields(raw, func(f protoField) {
		if f.number == 2 {
			l.items = append(l.items, f.data)
		}
	})
	return len(l.items) == len(stock.Items)
}

// oddFields says that a message has something that we do not follow: groups,
// numbers too long, or fields of metadata too long.
func oddFields(raw []byte) bool {
	odd := false
	return !fields(raw, func(f protoField) { odd = odd || f.number == 1 && len(f.data) > maxHead }) || odd
}

// Whatever arrives, and in whatever pieces, a stream is cut the same way, to its
// end or to the same error.
func FuzzFrames(f *testing.F) {
	for m, contentType := range medias {
		body := append(event(f, contentType, "ADDED", newPod(1)), bookmark(f, contentType, "7", true)...)
		f.Add(uint8(m), append(body, event(f, contentType, "ERROR", &metav1.Status{Code: 410})...), uint16(9))
	}
	f.Add(uint8(mediaJSON), []byte(`{"type":"ADDED","object":{"a":"\"}"}}{"type":1}  [`), uint16(2))
	f.Add(uint8(mediaProtobuf), []byte("\x00\x00\x00\x05\x0a\x03FOO\x00\x00\x01\x00\x00"), uint16(2))
	source := offline[*corev1.Pod](f, pods, SourceOptions{})
	f.Fuzz(func(t *testing.T, kind uint8, body []byte, piece uint16) {
		m := media(kind % 2)
		cut := func(piece, limit int) (frames []string, events []tarn.Event[*corev1.Pod], err error) {
			in := newBodyBuffer(crumbs{bytes.NewReader(body), piece}, firstBlock)
			defer in.close()
			for {
				f, err := nextFrame(in, m, limit)
				if err != nil {
					f.release()
					return frames, events, err
				}
				frames = append(frames, string(f.raw))
				events = append(events, source.event(m, f, nil))
				f.release()
			}
		}
		whole, events, err := cut(len(body)+1, DefaultMaxItem)
		pieces, _, pieceErr := cut(int(piece)%100+1, DefaultMaxItem)
		if n := len(pieces); brokenOff(pieceErr) && n < len(whole) {
			// Something that looks like the start of another event, while this one
			// is incomplete, may turn out to be part of one malformed event.
			if fmt.Sprint(whole[:n]) != fmt.Sprint(pieces) || events[n].Bad.Err == nil {
				t.Fatalf("whole: %q, %v; in pieces: %q, %v", whole, err, pieces, pieceErr)
			}
			return
		}
		if place(err) != place(pieceErr) || fmt.Sprint(whole) != fmt.Sprint(pieces) {
			t.Fatalf("whole: %q, %v; in pieces: %q, %v", whole, err, pieces, pieceErr)
		}
		if short, _, shortErr := cut(int(piece)%100+1, 20); len(short) != len(whole) || (shortErr == io.EOF) != (err == io.EOF) {
			t.Fatalf("%d frames, %v; with a limit %d, %v", len(whole), err, len(short), shortErr)
		}
		for i, e := range events {
			if e.Type == tarn.EventUndecodable && e.Bad.Err == nil || e.Bad.Err == nil && e.Type != tarn.EventBookmark && e.Object == nil {
				t.Fatalf("frame %q: %v", whole[i], e)
			}
		}
		if m == mediaJSON && err == io.EOF {
			sameFrames(t, body, whole)
		}
	})
}

// brokenOff says that an event seemed to begin within another.
func brokenOff(err error) bool {
	malformed, ok := errors.AsType[*malformedError](err)
	return ok && strings.Contains(malformed.what, "before another begins")
}

// place is where an error is, without its quote, which depends on how much has
// arrived.
func place(err error) string {
	if malformed, ok := errors.AsType[*malformedError](err); ok {
		return fmt.Sprint("malformed at ", malformed.at)
	}
	return fmt.Sprint(err)
}

// sameFrames compares with how encoding/json cuts a stream.
func sameFrames(t *testing.T, body []byte, frames []string) {
	d := json.NewDecoder(bytes.NewReader(body))
	for i := 0; ; i++ {
		var value json.RawMessage
		switch err := d.Decode(&value); {
		case err == io.EOF && i == len(frames):
			return
		case err != nil:
			if i < len(frames) {
				return // ours follows brackets and leaves the rest to the decoder
			}
			t.Fatalf("%d frames, then %v", len(frames), err)
		case i >= len(frames) || frames[i] != string(value):
			t.Fatalf("frame %d is %q, we have %q", i, value, frames)
		}
	}
}

// Whatever the bytes of an object, excerptOf does not fail, and finds the name in a
// good one.
func FuzzGlimpse(f *testing.F) {
	for m, contentType := range medias {
		raw := encode(f, contentType, newPod(1))
		if m == mediaProtobuf {
			e, _ := openEnvelope(raw)
			raw = e.raw
		}
		f.Add(uint8(m), raw)
	}
	f.Fuzz(func(t *testing.T, kind uint8, raw []byte) {
		m := media(kind % 2)
		g := excerptOf(m, raw)
		if m == mediaJSON {
			return // duplicate and case-folded keys are read differently
		}
		if o, err := partial(m, raw); err == nil && !oddFields(raw) {
			if g.name != "" && o.Name != "" && g.name != o.Name {
				t.Fatalf("the name is %q, we see %q", o.Name, g.name)
			}
		}
	})
}
