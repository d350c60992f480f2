package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn"
)

// offline is a source whose bodies come from the test.
func offline[T any](t testing.TB, c Collection, opts SourceOptions) *Source[T] {
	t.Helper()
	client, err := NewClient(&rest.Config{Host: "nowhere"})
	if err != nil {
		t.Fatal(err)
	}
	source, err := NewSource[T](client, c, opts)
	if err != nil {
		t.Fatal(err)
	}
	return source
}

func bodyOf(m media, body io.Reader) *response { return &response{media: m, body: io.NopCloser(body)} }

var medias = map[media]string{mediaJSON: jsonType, mediaProtobuf: protobufType}

// A body that ends too early is never accepted as whole, wherever it ends.
func TestListTruncated(t *testing.T) {
	source := offline[*corev1.Pod](t, pods, SourceOptions{})
	for m, contentType := range medias {
		body := podList(t, contentType, newPods(3), "9")
		complete := len(body)
		if m == mediaJSON {
			complete = len(bytes.TrimSpace(body))
		} else {
			complete -= len("\x1a\x00\x22\x00") // the envelope's last fields, which are empty
		}
		for n := range complete {
			page, err := source.readPage(t.Context(), bodyOf(m, bytes.NewReader(body[:n])), nil, nil)
			if tarn.ReasonOf(err) != tarn.ReasonLost || len(page.Items) != 0 {
				t.Fatalf("%s cut at %d of %d: %v", contentType, n, len(body), err)
			}
			if want := fmt.Sprintf("the list of pods was cut off at byte %d: ", n); !strings.HasPrefix(err.Error(), want) {
				t.Fatalf("%s cut at %d: %v", contentType, n, err)
			}
		}
		if page, err := source.readPage(t.Context(), bodyOf(m, bytes.NewReader(body[:complete])), nil, nil); err != nil || len(page.Items) != 3 {
			t.Errorf("%s: %v", contentType, err)
		}
	}
}

// The error of a connection is passed on, with its place.
func TestListReadError(t *testing.T) {
	source := offline[*corev1.Pod](t, pods, SourceOptions{})
	reset := errors.New("connection reset")
	body := podList(t, protobufType, newPods(3), "9")
	_, err := source.readPage(t.Context(), bodyOf(mediaProtobuf, io.MultiReader(bytes.NewReader(body[:200]), iotest.ErrReader(reset))), nil, nil)
	if !errors.Is(err, reset) || tarn.ReasonOf(err) != tarn.ReasonLost || !strings.Contains(err.Error(), "at byte 200") {
		t.Error(err)
	}
	_, err = source.readPage(t.Context(), bodyOf(mediaJSON, stuck{}), nil, nil)
	if !errors.Is(err, io.ErrNoProgress) {
		t.Error(err)
	}
}

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

// How a body is cut into reads makes no difference.
func TestListInAnyPieces(t *testing.T) {
	source := offline[*corev1.Pod](t, pods, SourceOptions{})
	for m, contentType := range medias {
		body := podList(t, contentType, newPods(20), "9")
		for name, read := range map[string]func(io.Reader) io.Reader{
			"one byte": iotest.OneByteReader, "half": iotest.HalfReader, "error with data": iotest.DataErrReader,
		} {
			page, err := source.readPage(t.Context(), bodyOf(m, read(bytes.NewReader(body))), nil, nil)
			if err != nil || len(page.Items) != 20 || page.Items[19].Name != "pod-19" {
				t.Errorf("%s, %s: %v, %d items", contentType, name, err, len(page.Items))
			}
		}
	}
}

// Objects of all sizes arrive whole, in particular around the sizes of blocks.
func TestListLargeItems(t *testing.T) {
	source := offline[*corev1.Pod](t, pods, SourceOptions{})
	all := newPods(40)
	for i, p := range all {
		p.Status.Message = strings.Repeat(fmt.Sprint(i%10), []int{0, 100, blockSize - 900, blockSize, 3 * blockSize, blockSize / 2, 7}[i%7])
	}
	for m, contentType := range medias {
		body := podList(t, contentType, all, "9")
		for _, read := range []func(io.Reader) io.Reader{iotest.HalfReader, func(r io.Reader) io.Reader { return r }} {
			page, err := source.readPage(t.Context(), bodyOf(m, read(bytes.NewReader(body))), nil, nil)
			if err != nil || len(page.Items) != len(all) {
				t.Fatalf("%s: %v, %d items", contentType, err, len(page.Items))
			}
			for i, p := range page.Items {
				if p.Name != all[i].Name || p.Status.Message != all[i].Status.Message {
					t.Fatalf("%s: item %d is not as it was", contentType, i)
				}
			}
		}
	}
}

// An item that is too long is a bad object with its name; its neighbours are good.
func TestListItemTooLong(t *testing.T) {
	source := offline[*corev1.Pod](t, pods, SourceOptions{MaxItem: 4000})
	for m, contentType := range medias {
		for _, size := range []int{5000, 100_000, 2 << 20} {
			all := newPods(5)
			all[2].Status.Message = strings.Repeat(`"`, size)
			page, err := source.readPage(t.Context(), bodyOf(m, bytes.NewReader(podList(t, contentType, all, "9"))), nil, nil)
			if err != nil || len(page.Items) != 4 || len(page.Bad) != 1 {
				t.Fatalf("%s: %v, %d items, bad %v", contentType, err, len(page.Items), page.Bad)
			}
			bad := page.Bad[0]
			if bad.Key != "default/pod-2" || bad.Version != "102" || !strings.Contains(bad.Err.Error(), "of the list of pods: the object has ") || !strings.Contains(bad.Err.Error(), "the limit is 4000") {
				t.Errorf("%s: %v", contentType, bad)
			}
		}
	}
}

// The fields of a JSON list may come in any order and in any shape.
func TestJSONListShapes(t *testing.T) {
	const pod = `{"metadata":{"name":"a"}}`
	source := offline[*corev1.Pod](t, pods, SourceOptions{})
	for body, want := range map[string]string{
		`{"items":[` + pod + `],"metadata":{"resourceVersion":"5"},"apiVersion":"v1","kind":"PodList"}`:              "1 at 5",
		" {\n\t\"kind\" : \"PodList\" ,\r\n \"items\" : [ " + pod + " , " + pod + " ] } \n":                          "2 at ",
		`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":null}`:                       "0 at 5",
		`{"kind":"PodList","apiVersion":"v1","items":[]}`:                                                            "0 at ",
		`{"kind":"PodList","apiVersion":"v1"}`:                                                                       "0 at ",
		`{"\u0069tems":[` + pod + `],"more":{"items":[1,2]},"x":[[]],"y":"]}","z":1.5e3}`:                            "1 at ",
		`{"metadata":null,"items":[` + pod + `]}`:                                                                    "1 at ",
		`{"kind":"List","apiVersion":"v1","items":[` + pod + `]}`:                                                    "1 at ",
		`{"big":"` + strings.Repeat("x", maxHead+10) + `","items":[` + pod + `],"metadata":{"resourceVersion":"7"}}`: "1 at 7",
		`{"items":[` + pod + `],"items":[]}`:                                                                         `the field "items" is there twice`,
		`{"items":{}}`:                                                                                               `the field "items" is not an array`,
		`{"items":nul}`:                                                                                              `the field "items" is not an array`,
		`{"items":[` + pod + `,]}`:                                                                                   "nothing follows a comma",
		`{"items":[` + pod + pod + `]}`:                                                                              "instead of a comma",
		`{"items":[` + pod + `]]}`:                                                                                   "instead of a comma",
		`{"items":[:]}`:                                                                                              "an item is missing",
		`{"items" [` + pod + `]}`:                                                                                    "instead of a colon",
		`{items:[]}`:                                                                                                 "instead of a field's name",
		`{"kind":}`:                                                                                                  "a value is missing",
		`{"kind":5}`:                                                                                                 `the field "kind" cannot be read`,
		`{"items":[]} x`:                                                                                             "something follows the list",
		`[]`:                                                                                                         "instead of an object",
		`{"kind":"Pod","metadata":{"name":"x"}}`:                                                                     "and has no items",
		`{}`:                                                                                                         "and has no items",
	} {
		page, err := source.readPage(t.Context(), bodyOf(mediaJSON, strings.NewReader(body)), nil, nil)
		got := fmt.Sprintf("%d at %s", len(page.Items), page.Version)
		if err != nil {
			got = err.Error()
		}
		if !strings.HasSuffix(got, want) && !strings.Contains(got, want) || (err == nil) != strings.Contains(want, " at ") {
			t.Errorf("%.80s: %s, want %s", body, got, want)
		}
	}
}

// A protobuf list may be written in ways that servers do not use.
func TestProtobufListShapes(t *testing.T) {
	source := offline[*corev1.Pod](t, pods, SourceOptions{})
	bytesField := func(number byte, value string) string {
		return string([]byte{number<<3 | 2}) + string(varint(len(value))) + value
	}
	pod := func(name string) string {
		raw, _ := (&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}).Marshal()
		return bytesField(2, string(raw))
	}
	listMeta := func(version string) string {
		raw, _ := (&metav1.ListMeta{ResourceVersion: version}).Marshal()
		return bytesField(1, string(raw))
	}
	kind := bytesField(1, bytesField(1, "v1")+bytesField(2, "PodList"))
	services := bytesField(1, bytesField(1, "v1")+bytesField(2, "ServiceList"))
	for name, test := range map[string]struct{ body, want string }{
		"as servers do":      {kind + bytesField(2, listMeta("5")+pod("a")+pod("b")) + bytesField(3, "") + bytesField(4, ""), "2 at 5"},
		"kind last":          {bytesField(2, listMeta("5")+pod("a")) + kind, "1 at 5"},
		"metadata last":      {kind + bytesField(2, pod("a")+listMeta("5")), "1 at 5"},
		"metadata twice":     {kind + bytesField(2, listMeta("5")+pod("a")+listMeta("6")), "1 at 6"},
		"list twice":         {kind + bytesField(2, listMeta("5")+pod("a")+pod("b")) + bytesField(2, pod("c")), "1 at "},
		"empty":              {kind + bytesField(2, ""), "0 at "},
		"unknown fields":     {kind + bytesField(2, "\x18\x05\x21abcdefgh\x2dabcd"+bytesField(6, "x")+pod("a")), "1 at "},
		"foreign, kind last": {bytesField(2, pod("a")) + services, "expected one of"},
		"foreign":            {services + bytesField(2, pod("a")), "expected one of"},
		"item too long":      {kind + "\x12\x05\x12\x20abc", "an item of 32 bytes in a list that has 3 left"},
		"items as numbers":   {kind + bytesField(2, "\x10\x05"), "field 2 of the list has wire type 0"},
		"a group":            {kind + bytesField(2, "\x1b\x1c"), "a field of wire type 3"},
		"list as number":     {kind + "\x10\x05", "field 2 of the envelope has wire type 0"},
		"kind malformed":     {bytesField(1, "\x0a\xff"), "the kind cannot be read"},
		"huge list":          {kind + "\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "a list of 18446744073709551615 bytes"},
		"endless number":     {kind + strings.Repeat("\xff", 20), "a number does not end"},
		"field over the end": {kind + "\x12\x03\x1a\x05" + strings.Repeat("a", 50), "a field is longer than the list"},
	} {
		page, err := source.readPage(t.Context(), bodyOf(mediaProtobuf, strings.NewReader("k8s\x00"+test.body)), nil, nil)
		got := fmt.Sprintf("%d at %s", len(page.Items), page.Version)
		if err != nil {
			got = err.Error()
		}
		if (err == nil) != strings.Contains(test.want, " at ") || err == nil && got != test.want || !strings.Contains(got, test.want) {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func varint(n int) []byte {
	var b []byte
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}

// A stream that ends within an event was cut off; between events it has ended
// normally.
func TestWatchTruncated(t *testing.T) {
	source := offline[*corev1.Pod](t, pods, SourceOptions{})
	for m, contentType := range medias {
		one := event(t, contentType, "ADDED", newPod(1))
		body := append(bytes.Clone(one), event(t, contentType, "MODIFIED", newPod(2))...)
		for i := range 2 * (len(body) + 1) {
			n, initial := i/2, i%2 == 1
			ctx, cancel := context.WithCancel(t.Context())
			stream := source.newStream(ctx, cancel, bodyOf(m, bytes.NewReader(body[:n])), tarn.WatchQuery{Initial: initial})
			events, err := collect(t, stream, 4)
			stream.Close()
			whole := n == 0 || n == len(one) || n == len(body)
			if m == mediaJSON && (n == len(one)-1 || n == len(body)-1) {
				whole = true // but for the newline
			}
			if whole != (err == io.EOF) || whole == (tarn.ReasonOf(err) == tarn.ReasonLost) {
				t.Fatalf("%s cut at %d: %v", contentType, n, err)
			}
			want := 0
			if n >= len(one)-1 {
				want = 1
			}
			if m == mediaProtobuf && n == len(one)-1 {
				want = 0
			}
			if n < len(body)-1 && len(events) != want {
				t.Fatalf("%s cut at %d: %d events", contentType, n, len(events))
			}
		}
	}
}

// JSON events are read whatever the order of their fields, and with more of them.
func TestJSONEventShapes(t *testing.T) {
	source := offline[*corev1.Pod](t, pods, SourceOptions{})
	const pod = `{"metadata":{"name":"a","namespace":"ns","annotations":{"x":"}{\""}},"spec":{"containers":[{"name":"c"}]}}`
	for body, want := range map[string]string{
		`{"type":"ADDED","object":` + pod + `}`:                               "1 ns/a",
		` { "type" : "ADDED" , "object" : ` + pod + ` } `:                     "1 ns/a",
		`{"object":` + pod + `,"type":"MODIFIED"}`:                            "2 ns/a",
		`{"type":"DELETED","object":` + pod + `,"more":1}`:                    "3 ns/a",
		`{"type":"DELETED","object":` + pod + `,"more":{}}`:                   "3 ns/a",
		`{"type":"ADDED","x":{},"object":` + pod + `}`:                        "1 ns/a",
		`{"type":"\u0041DDED","object":` + pod + `}`:                          "1 ns/a",
		`{"type":"ADDED","object":1,"x":{}}`:                                  "bad",
		`{"type":"ADDED","object":[` + pod + `]}`:                             "bad",
		`{"type":"ADDED"}`:                                                    "bad",
		`{"Type":"ADDED","object":` + pod + `}`:                               "bad",
		`{"type":"ADDED","object":{"metadata":{"name":"a","namespace":"b"]}}`: "bad",
	} {
		ctx, cancel := context.WithCancel(t.Context())
		stream := source.newStream(ctx, cancel, bodyOf(mediaJSON, strings.NewReader(body+`{"type":"ADDED","object":`+pod+`}`)), tarn.WatchQuery{})
		events, err := collect(t, stream, 1)
		stream.Close()
		if err != io.EOF || len(events) != 2 || events[1].Type != tarn.EventAdded {
			t.Errorf("%s: %v, %v", body, events, err)
			continue
		}
		got := "bad"
		if e := events[0]; e.Bad.Err == nil {
			got = fmt.Sprintf("%d %s/%s", e.Type, e.Object.Namespace, e.Object.Name)
		}
		if got != want {
			t.Errorf("%s: %s (%v), want %s", body, got, events[0].Bad, want)
		}
	}
}

// A length that is only claimed costs no memory.
func TestClaimedLength(t *testing.T) {
	for body, read := range map[string]func(*bodyBuffer) error{
		"\x01\xff\xff\xff": func(f *bodyBuffer) error { _, err := nextFrame(f, mediaProtobuf, DefaultMaxItem); return err },
		"k8s\x00\x12\xff\xff\xff\x7f\x12\xff\xff\xff\x0f": func(f *bodyBuffer) error {
			_, err := readList(f, mediaProtobuf, DefaultMaxItem, counter{})
			return err
		},
	} {
		f := newBodyBuffer(strings.NewReader(body), firstBlock)
		if err := read(f); err != io.ErrUnexpectedEOF {
			t.Error(err)
		}
		if got := len(f.block.data); got > 2*blockSize {
			t.Errorf("%q made us take %d bytes", body, got)
		}
		f.close()
	}
}
