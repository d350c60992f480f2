package kube

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn"
)

// Initial events wait for others, but not for long, and nothing waits behind them;
// later events are delivered at once.
func TestInitialEventsComeInBlocks(t *testing.T) {
	gone := &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Code: 410, Reason: "Expired"}
	for m, contentType := range medias {
		one := func(kind string) []byte { return event(t, contentType, kind, newPod(1)) }
		end := bookmark(t, contentType, "9", true)
		for name, c := range map[string]struct {
			live bool
			// pause is the time before each piece, by how many events have been
			// sent after it.
			pause  time.Duration
			pieces [][]byte
			told   []int
		}{
			"in a burst":      {pieces: [][]byte{one("ADDED"), one("ADDED"), end}, told: []int{0, 0, 3}},
			"slowly":          {pause: initialEventDelay + 1, pieces: [][]byte{one("ADDED"), one("ADDED"), end}, told: []int{1, 2, 3}},
			"with a change":   {pieces: [][]byte{one("ADDED"), one("MODIFIED"), one("ADDED")}, told: []int{0, 2, 3}},
			"after the end":   {pieces: [][]byte{end, one("ADDED"), one("ADDED")}, told: []int{1, 2, 3}},
			"given up":        {pieces: [][]byte{one("ADDED"), event(t, contentType, "ERROR", gone)}, told: []int{0, 1}},
			"more than fits":  {pieces: [][]byte{one("ADDED"), event(t, contentType, "ADDED", bigPod(firstBlock))}, told: []int{0, 1}},
			"of no beginning": {live: true, pieces: [][]byte{one("ADDED"), one("ADDED")}, told: []int{1, 2}},
		} {
			t.Run(contentType+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					in, out := io.Pipe()
					ctx, cancel := context.WithCancel(t.Context())
					stream := offline[*corev1.Pod](t, pods, SourceOptions{}).newStream(ctx, cancel, &response{media: m, body: in}, tarn.WatchQuery{Initial: !c.live})
					told := make(chan int, 10)
					go func() {
						buf, sum := make([]tarn.Event[*corev1.Pod], 10), 0
						for {
							n, err := stream.Next(t.Context(), buf)
							if err != nil {
								return
							}
							sum += n
							told <- sum
						}
					}()
					sum := 0
					for i, piece := range c.pieces {
						time.Sleep(c.pause)
						if _, err := out.Write(piece); err != nil {
							t.Fatal(err)
						}
						synctest.Wait()
						for len(told) > 0 {
							sum = <-told
						}
						if sum != c.told[i] {
							t.Errorf("after piece %d: %d events told, want %d", i, sum, c.told[i])
						}
					}
					stream.Close()
				})
			})
		}
	}
}

func bigPod(size int) *corev1.Pod {
	pod := newPod(2)
	pod.Status.Message = string(make([]byte, size))
	return pod
}
