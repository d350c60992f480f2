package kube

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn"
)

// recording is what servers of a version answer to the requests for a copy of pods.
// The files are written by hand, after the sources of those servers.
type recording struct {
	codes  map[string]int
	bodies map[string]string
	asked  []string
}

var recordedPart = regexp.MustCompile(`(?m)^-- (\w+)(?: (\d+))? --\n`)

func readRecording(t *testing.T, file string) *recording {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r := &recording{codes: map[string]int{}, bodies: map[string]string{}}
	text := string(content)
	marks := recordedPart.FindAllStringSubmatchIndex(text, -1)
	for i, m := range marks {
		end := len(text)
		if i+1 < len(marks) {
			end = marks[i+1][0]
		}
		name := text[m[2]:m[3]]
		r.bodies[name] = text[m[1]:end]
		if m[4] >= 0 {
			if r.codes[name], err = strconv.Atoi(text[m[4]:m[5]]); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, name := range []string{"initial", "list", "watch", "then", "requests"} {
		if r.bodies[name] == "" {
			t.Fatalf("%s has no part %q", file, name)
		}
	}
	return r
}

// RoundTrip plays the recorded answer. A stream stays open until its reader closes
// it.
func (r *recording) RoundTrip(request *http.Request) (*http.Response, error) {
	query := request.URL.Query()
	name := "list"
	switch {
	case query.Get("sendInitialEvents") == "true":
		name = "initial"
	case query.Get("watch") != "":
		name = "watch"
	}
	r.asked = append(r.asked, name)
	body := io.NopCloser(strings.NewReader(r.bodies[name]))
	if name != "list" && r.codes[name] == http.StatusOK {
		body = &openStream{Reader: strings.NewReader(r.bodies[name]), ctx: request.Context()}
	}
	return &http.Response{
		StatusCode: r.codes[name], Status: http.StatusText(r.codes[name]), Request: request, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {jsonType}}, Body: body, ContentLength: -1,
	}, nil
}

// openStream is a body that does not end by itself.
type openStream struct {
	*strings.Reader
	ctx context.Context
}

func (s *openStream) Read(p []byte) (int, error) {
	if s.Len() > 0 {
		return s.Reader.Read(p)
	}
	<-s.ctx.Done()
	return 0, context.Cause(s.ctx)
}

func (s *openStream) Close() error { return nil }

// A copy of a server of any version syncs, follows changes, and makes no
// unnecessary request.
func TestServersOfOtherVersions(t *testing.T) {
	files, err := filepath.Glob("testdata/servers/*.txt")
	if err != nil || len(files) < 8 {
		t.Fatalf("there are only the recordings %v: %v", files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				played := readRecording(t, file)
				pods := live(t, func(ctx context.Context) (*tarn.Replica[*corev1.Pod], error) {
					cfg := &rest.Config{Host: "http://server.invalid", QPS: -1, Transport: played}
					return Reflect[*corev1.Pod](ctx, cfg, Resource(podResource), Logger(slog.New(slog.NewTextHandler(io.Discard, nil))))
				})
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				if err := pods.WaitSynced(ctx); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second) // for what follows the first state
				synctest.Wait()
				var got []string
				for key, pod := range pods.All() {
					got = append(got, fmt.Sprintf("%s@%s %s\n", key, pod.ResourceVersion, pod.Status.Phase))
				}
				slices.Sort(got)
				if text := strings.Join(got, ""); text != played.bodies["then"] {
					t.Errorf("the copy has\n%s and the server\n%s", text, played.bodies["then"])
				}
				asked := slices.Compact(slices.Clone(played.asked))
				if text := strings.Join(asked, "\n") + "\n"; text != played.bodies["requests"] {
					t.Errorf("the requests are %q", played.asked)
				}
				// A server that ignores the request is asked three times.
				if given, want := pods.Health().WatchListGivenUp, played.codes["initial"] != http.StatusOK; given != want {
					t.Errorf("streams are given up: %v, want %v", given, want)
				}
			})
		})
	}
}
