package kube

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/podfile"
)

var podFile = flag.String("pods", "", "`file` with the protobuf of a PodList, as a server sends it, compressed by zstd; without it pods are made up")

// foreignForm is how objects of other shards are written.
type foreignForm struct {
	name        string
	media       media
	contentType string
	// sorted says that fields are in the order of their names, as in custom resources: uid
	// is one of the last of the metadata.
	sorted bool
}

// write is a text of the server in this form.
func (f foreignForm) write(b *testing.B, raw []byte) []byte {
	if !f.sorted {
		return raw
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		b.Fatal(err)
	}
	raw, err := json.Marshal(value)
	if err != nil {
		b.Fatal(err)
	}
	return raw
}

// BenchmarkForeign measures what an object of another shard costs: finding it in a body,
// and dropping it. Objects have about 9.6 KB in protobuf, and 13 KB in JSON.
//
//	go test -run - -bench Foreign ./kube -pods pods.pb.zst
func BenchmarkForeign(b *testing.B) {
	none, err := NewShardSet(ShardByUID)
	if err != nil {
		b.Fatal(err)
	}
	all := foreignPods(b)
	for _, form := range []foreignForm{
		{"json", mediaJSON, jsonType, false},
		{"sorted json", mediaJSON, jsonType, true},
		{"protobuf", mediaProtobuf, protobufType, false},
	} {
		list := form.write(b, podList(b, form.contentType, all, "9"))
		var stream []byte
		var raws [][]byte
		for _, p := range all {
			raw := form.write(b, encode(b, form.contentType, p))
			stream = append(stream, rawEvent(b, form.contentType, "MODIFIED", raw)...)
			if envelope, ok := openEnvelope(raw); ok {
				raw = envelope.raw
			}
			raws = append(raws, raw)
		}
		source := offline[*corev1.Pod](b, pods, SourceOptions{Shard: NewSharding(none)})
		report := func(b *testing.B, size int) {
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(all)), "ns/object")
			b.ReportMetric(float64(size)/float64(len(all)), "B/object")
		}
		b.Run("list/"+form.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				resp := &response{body: io.NopCloser(bytes.NewReader(list)), media: form.media, filter: source.shard.filter()}
				page, err := source.readPage(b.Context(), resp, nil, nil)
				if err != nil || len(page.Items) > 0 {
					b.Fatal(err, len(page.Items))
				}
			}
			report(b, len(list))
		})
		b.Run("peek/"+form.name, func(b *testing.B) {
			filter := source.shard.filter()
			for b.Loop() {
				for _, raw := range raws {
					if !filter.foreign(form.media, raw) {
						b.Fatal("an object of no shard is kept")
					}
				}
			}
			report(b, len(list))
		})
		b.Run("watch/"+form.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f := newBodyBuffer(bytes.NewReader(stream), firstBlock)
				r := frameReader{media: form.media, limit: DefaultMaxItem, shard: newStreamFilter(source.shard.filter(), tarn.WatchQuery{Initial: true})}
				if err := newInbox().read(f, r, nil); err != io.EOF {
					b.Fatal(err)
				}
				f.close()
			}
			report(b, len(stream))
		})
	}
}

// foreignPods are a thousand pods: those of a file, as often as it takes, or made up.
func foreignPods(b *testing.B) []*corev1.Pod {
	all := newPods(1000)
	if *podFile == "" {
		for _, p := range all {
			for i := range 60 {
				c := p.Spec.Containers[0]
				c.Name, c.Image = fmt.Sprintf("container-%d", i), fmt.Sprintf("registry.example.com/team/image-%d:v1.2.3", i)
				c.Env = append(c.Env, corev1.EnvVar{Name: "POD_NAMESPACE", Value: "some-namespace-of-the-cluster"})
				p.Spec.Containers = append(p.Spec.Containers, c)
			}
		}
		return all
	}
	read, err := podfile.Read(*podFile)
	if err != nil {
		b.Fatal(err)
	}
	for i := range all {
		all[i] = &read[i%len(read)]
	}
	return all
}
