package kube

import (
	"bytes"
	"testing"
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
func (counter) foreignStart([]byte) (int, bool)      { return 0, false }
func (counter) forget()                              {}
