package replay

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"runtime"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn/bench/podset"
)

// form is the collection in one format, encoded.
type form struct {
	traits
	version        int
	items, updates [][]byte
	// zipped is the whole list, compressed, if the server compresses.
	zipped []byte
	// bursts is taken from by whatever watch there is: clients are measured one
	// at a time.
	bursts chan span
}

// span is a part of the updates.
type span struct{ from, to int }

func newForm(format Format, set *podset.Set, updates []podset.Update, compress bool) (*form, error) {
	t, ok := formats[format]
	if !ok {
		return nil, fmt.Errorf("there is no format %q", format)
	}
	f := &form{traits: t, version: set.Version, bursts: make(chan span)}
	var err error
	if f.items, err = f.encodeAll(len(set.Pods), func(i int) []byte { return set.Pods[i] }); err != nil {
		return nil, err
	}
	if f.updates, err = f.encodeAll(len(updates), func(i int) []byte { return updates[i].Pod }); err != nil {
		return nil, err
	}
	if compress {
		var b bytes.Buffer
		z, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed) // that level is valid
		w := bufio.NewWriter(z)
		f.codec.list(w, f.page(0, len(f.items)))
		w.Flush()
		z.Close()
		f.zipped = b.Bytes()
	}
	return f, nil
}

// encodeAll turns protobuf pods into this format, on all cores.
func (f *form) encodeAll(n int, pod func(int) []byte) ([][]byte, error) {
	encoded := make([][]byte, n)
	workers := runtime.GOMAXPROCS(0)
	failed := make([]error, workers)
	var running sync.WaitGroup
	for w := range workers {
		running.Go(func() {
			for i := w; i < n && failed[w] == nil; i += workers {
				var p corev1.Pod
				if failed[w] = p.Unmarshal(pod(i)); failed[w] == nil {
					encoded[i], failed[w] = f.encode(&p)
				}
			}
		})
	}
	running.Wait()
	for _, err := range failed {
		if err != nil {
			return nil, fmt.Errorf("encode a pod as %s: %w", f.mediaType, err)
		}
	}
	return encoded, nil
}

// page is the items from one index up to another.
func (f *form) page(from, to int) page {
	p := page{version: strconv.Itoa(f.version), items: f.items[from:to]}
	if to < len(f.items) {
		p.next, p.remaining = strconv.Itoa(to), len(f.items)-to
	}
	return p
}

// bookmark is the object of a bookmark at the collection's version.
func (f *form) bookmark(initialEnd bool) ([]byte, error) {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.Itoa(f.version)}}
	if initialEnd {
		pod.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	return f.encode(&pod)
}
