package kube

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tarnproject/tarn"
)

// The events of other shards are dropped, and no others, however a server breaks lines and
// however the bytes arrive.
func TestForeignLines(t *testing.T) {
	all := newPods(40)
	set, err := ShardOf(ShardByUID, 0, 2)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	var events [][]byte
	for i, p := range all {
		p.UID = types.UID(fmt.Sprintf("%d-0c8a9d3e-52f4-4e0c", i*7919))
		p.Annotations = map[string]string{"text": "a\nline {\"quoted\"} }}"}
		events = append(events, bytes.TrimSpace(event(t, medias[mediaJSON], []string{"ADDED", "MODIFIED", "DELETED"}[i%3], p)))
		if set.hasHash(shardHash(string(p.UID))) {
			want = append(want, p.Name)
		}
	}
	if len(want) == 0 || len(want) == len(all) {
		t.Fatalf("%d of %d pods are in the shard", len(want), len(all))
	}
	indented := func(raw []byte) []byte {
		var out bytes.Buffer
		if err := json.Indent(&out, raw, "", " "); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	broken := func(raw []byte) []byte { return bytes.Replace(raw, []byte(`,"spec"`), []byte("\n,\"spec\""), 1) }
	same := func(raw []byte) []byte { return raw }
	for name, c := range map[string]struct {
		form    func([]byte) []byte
		between string
		end     string
	}{
		"lines":                   {same, "\n", "\n"},
		"the last has no newline": {same, "\n", ""},
		"no lines":                {same, "", ""},
		"several newlines":        {same, "\n\n \n", "\n"},
		"carriage returns":        {same, "\r\n", "\r\n"},
		"indented":                {indented, "\n", "\n"},
		"lines within events":     {broken, "\n", "\n"},
	} {
		var stream []byte
		for i, e := range events {
			if i > 0 {
				stream = append(stream, c.between...)
			}
			stream = append(stream, c.form(e)...)
		}
		stream = append(stream, c.end...)
		for arrival, in := range map[string]io.Reader{
			"at once": bytes.NewReader(stream), "byte by byte": iotest.OneByteReader(bytes.NewReader(stream)), "in halves": iotest.HalfReader(bytes.NewReader(stream)),
		} {
			t.Run(name+", "+arrival, func(t *testing.T) {
				source := offline[*corev1.Pod](t, pods, SourceOptions{Shard: NewSharding(set)})
				f, i := newBodyBuffer(in, firstBlock), newInbox()
				r := frameReader{media: mediaJSON, limit: DefaultMaxItem, shard: newStreamFilter(source.shard.filter(), tarn.WatchQuery{Initial: true})}
				if err := i.read(f, r, nil); err != io.EOF {
					t.Fatal(err)
				}
				f.close()
				frames, _ := i.take(nil, len(all))
				var got []string
				for _, n := range frames {
					var e struct{ Object metav1.PartialObjectMetadata }
					if err := json.Unmarshal(n.raw, &e); err != nil {
						t.Fatal(err)
					}
					got = append(got, e.Object.Name)
					n.release()
				}
				if !slices.Equal(got, want) {
					t.Errorf("kept %s, want %s", strings.Join(got, " "), strings.Join(want, " "))
				}
			})
		}
	}
}
