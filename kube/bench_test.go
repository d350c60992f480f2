package kube

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/tarnproject/tarn"
)

// BenchmarkCut measures finding the objects in a body, without decoding them.
func BenchmarkCut(b *testing.B) {
	for m, contentType := range medias {
		all := newPods(1000)
		for _, p := range all {
			for range 6 {
				p.Spec.Containers = append(p.Spec.Containers, p.Spec.Containers[0])
			}
		}
		list := podList(b, contentType, all, "9")
		var stream []byte
		for _, p := range all {
			stream = append(stream, event(b, contentType, "ADDED", p)...)
		}
		b.Run("list/"+contentType, func(b *testing.B) {
			b.SetBytes(int64(len(list)))
			b.ReportAllocs()
			for b.Loop() {
				f := newBodyBuffer(bytes.NewReader(list), blockSize)
				if _, err := readList(f, m, DefaultMaxItem, counter{}); err != nil {
					b.Fatal(err)
				}
				f.close()
			}
		})
		b.Run("watch/"+contentType, func(b *testing.B) {
			b.SetBytes(int64(len(stream)))
			b.ReportAllocs()
			for b.Loop() {
				f := newBodyBuffer(bytes.NewReader(stream), firstBlock)
				for {
					frame, err := nextFrame(f, m, DefaultMaxItem)
					if err != nil {
						break
					}
					frame.release()
				}
				f.close()
			}
		})
	}
}

// counter takes items and does nothing with them.
type counter struct{}

func (counter) item(f *bodyBuffer, n int)            { f.take(n) }
func (counter) tooLong(start []byte, size, at int64) {}
func (counter) foreignStart([]byte) bool             { return false }
func (counter) forget()                              {}

// BenchmarkForeign measures what an object of another shard costs: finding it in a body,
// and dropping it. Objects have about 9.6 KB in protobuf.
func BenchmarkForeign(b *testing.B) {
	none, err := NewShardSet(ShardByUID)
	if err != nil {
		b.Fatal(err)
	}
	for m, contentType := range medias {
		all := newPods(1000)
		for _, p := range all {
			for i := range 60 {
				c := p.Spec.Containers[0]
				c.Name, c.Image = fmt.Sprintf("container-%d", i), fmt.Sprintf("registry.example.com/team/image-%d:v1.2.3", i)
				c.Env = append(c.Env, corev1.EnvVar{Name: "POD_NAMESPACE", Value: "some-namespace-of-the-cluster"})
				p.Spec.Containers = append(p.Spec.Containers, c)
			}
		}
		list := podList(b, contentType, all, "9")
		var stream []byte
		for _, p := range all {
			stream = append(stream, event(b, contentType, "MODIFIED", p)...)
		}
		source := offline[*corev1.Pod](b, pods, SourceOptions{Shard: NewSharding(none)})
		report := func(b *testing.B, size int) {
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(all)), "ns/object")
			b.ReportMetric(float64(size)/float64(len(all)), "B/object")
		}
		b.Run("list/"+contentType, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				resp := &response{body: io.NopCloser(bytes.NewReader(list)), media: media(m), filter: source.shard.filter()}
				page, err := source.readPage(b.Context(), resp, nil, nil)
				if err != nil || len(page.Items) > 0 {
					b.Fatal(err, len(page.Items))
				}
			}
			report(b, len(list))
		})
		var raws [][]byte
		for _, p := range all {
			raw := encode(b, contentType, p)
			if envelope, ok := openEnvelope(raw); ok {
				raw = envelope.raw
			}
			raws = append(raws, raw)
		}
		b.Run("peek/"+contentType, func(b *testing.B) {
			filter := source.shard.filter()
			for b.Loop() {
				for _, raw := range raws {
					if !filter.foreign(media(m), raw) {
						b.Fatal("an object of no shard is kept")
					}
				}
			}
			report(b, len(list))
		})
		b.Run("watch/"+contentType, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f := newBodyBuffer(bytes.NewReader(stream), firstBlock)
				r := frameReader{media: media(m), limit: DefaultMaxItem, shard: newStreamFilter(source.shard.filter(), tarn.WatchQuery{Initial: true})}
				if err := newInbox().read(f, r, nil); err != io.EOF {
					b.Fatal(err)
				}
				f.close()
			}
			report(b, len(stream))
		})
	}
}
