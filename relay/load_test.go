package relay

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarnproject/tarn/internal/testsize"
)

var (
	loadWatchers = testsize.Flag("load-watchers", 200, 50, "how many clients TestManyWatchers has")
	loadUpdates  = testsize.Flag("load-updates", 60, 20, "how many updates they are sent, 20 a second")
)

// Every watcher gets every event, while another client never reads.
func TestManyWatchers(t *testing.T) {
	r := newRig(t, Options{})
	r.settle()
	version := r.origin.Version()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	stuck, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer stuck.Close()
	fmt.Fprintf(stuck, "GET /api/v1/pods?watch=1&resourceVersion=%s HTTP/1.1\r\nHost: x\r\n\r\n", version)

	var reading sync.WaitGroup
	var mu sync.Mutex
	written := map[string]time.Time{}
	var delays []time.Duration
	for range loadWatchers() {
		reading.Go(func() {
			request, _ := http.NewRequestWithContext(ctx, http.MethodGet, r.url+"/api/v1/pods?watch=1&resourceVersion="+version, nil)
			answer, err := transport.RoundTrip(request)
			if err != nil {
				t.Error(err)
				return
			}
			defer answer.Body.Close()
			lines := bufio.NewReader(answer.Body)
			for i := range loadUpdates() {
				line, err := lines.ReadString('\n')
				if err != nil {
					t.Errorf("after %d events: %v", i, err)
					return
				}
				label := fmt.Sprint("u", i)
				if !strings.Contains(line, `"l":"`+label+`"`) {
					t.Errorf("event %d is %.200s", i, line)
				}
				mu.Lock()
				delays = append(delays, time.Since(written[label]))
				mu.Unlock()
			}
		})
	}
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for i := range loadUpdates() {
		label := fmt.Sprint("u", i)
		mu.Lock()
		written[label] = time.Now()
		mu.Unlock()
		object := pod("p", label)
		object.Annotations = map[string]string{"padding": strings.Repeat("x", 8<<10)}
		r.put(object)
		<-ticker.C
	}
	reading.Wait()
	slices.Sort(delays)
	if n := len(delays); n > 0 {
		t.Logf("%d deliveries, half of them within %v, 99%% within %v", n, delays[n/2], delays[n*99/100])
	}
}
