package apiserver

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A call is one request of a recorded conversation.
type call struct {
	// title is a heading in the record.
	title string
	// method and path as they are sent; $name stands for what was saved before.
	method, path string
	accept, kind string
	body         string
	// save is the name under which the version of the answer is kept, "" for
	// none. A list's continue token is kept as name+".continue".
	save string
	// settle gives a real server the time to take note of the call before.
	settle bool
	// loose answers are compared by code and reason only: their text depends on the
	// inside of the real server.
	loose bool
}

// TestRecorded holds a conversation and compares every answer with the one that
// a real kube-apiserver 1.36 gave.
//
// The record in testdata is made again by naming a server that is otherwise
// unused: RECORD_URL=https://… RECORD_TOKEN=… go test -run Recorded . With COMPARE_URL
// the answers of such a server are compared with the record instead.
func TestRecorded(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(conversations)) {
		calls := conversations[name]
		t.Run(name, func(t *testing.T) {
			file := "testdata/recorded/" + name + ".txt"
			if url := os.Getenv("RECORD_URL"); url != "" {
				got := hold(t, realServer(), url, name, calls)
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var got string
			if url := os.Getenv("COMPARE_URL"); url != "" {
				got = hold(t, realServer(), url, name, calls)
				if want, got := withoutPast(string(want)), withoutPast(got); got != want {
					t.Errorf("the real server answers otherwise (-real +this):\n%s", cmp.Diff(want, got))
				}
				return
			}
			synctest.Test(t, func(t *testing.T) {
				server := New(Options{})
				defer server.Close()
				got = hold(t, server.transport(), "http://server", name, calls)
			})
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("the real server answers otherwise (-real +ours):\n%s", diff)
			}
		})
	}
}

// withoutPast drops an answer from a record: how far back a server remembers is its own.
func withoutPast(record string) string {
	before, rest, _ := strings.Cut(record, "== long ago\n")
	_, after, _ := strings.Cut(rest, "\n== ")
	return before + after
}

func realServer() http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		r.Header.Set("Authorization", "Bearer "+os.Getenv("RECORD_TOKEN"))
		transport := http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
		return transport.RoundTrip(r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// hold makes the calls one after the other and returns the answers. Each
// conversation has a namespace of its own in the place of "talk".
func hold(t *testing.T, transport http.RoundTripper, base, namespace string, calls []call) string {
	t.Helper()
	saved := map[string]string{}
	var record strings.Builder
	for _, c := range calls {
		c.path, c.body = strings.ReplaceAll(c.path, "talk", namespace), strings.ReplaceAll(c.body, "talk", namespace)
		if c.settle && os.Getenv("RECORD_URL")+os.Getenv("COMPARE_URL") != "" {
			time.Sleep(5 * time.Second)
		}
		request, err := http.NewRequest(c.method, base+substitute(c.path, saved), strings.NewReader(substitute(c.body, saved)))
		if err != nil {
			t.Fatal(err)
		}
		if c.accept != "" {
			request.Header.Set("Accept", c.accept)
		}
		if c.kind == "" {
			c.kind = "application/json"
		}
		request.Header.Set("Content-Type", c.kind)
		response, err := transport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		said := readable(body, saved, c.save)
		if c.loose {
			said = reason(body)
		}
		fmt.Fprintf(&record, "== %s\n%s %s\n%d\n%s\n", c.title, c.method, c.path, response.StatusCode, said)
	}
	return record.String()
}

// reason is the only part of some answers that is compared.
func reason(body []byte) string {
	var status struct{ Reason string }
	if json.Unmarshal(body, &status) != nil || status.Reason == "" {
		return "(not compared)"
	}
	return status.Reason
}

// substitute puts saved values in the place of their names. "$a+5" is a sum.
func substitute(text string, saved map[string]string) string {
	return regexp.MustCompile(`\$([a-z.]+)(\+\d+)?`).ReplaceAllStringFunc(text, func(name string) string {
		name, plus, sum := strings.Cut(name[1:], "+")
		value, ok := saved[name]
		if !ok {
			return "$" + name
		}
		if sum {
			n, _ := strconv.Atoi(value)
			m, _ := strconv.Atoi(plus)
			return strconv.Itoa(n + m)
		}
		return value
	})
}

// accidents are what differs from server to server. Those before the gap are
// taken out before versions are replaced by the names they were saved under.
var accidents = [2][]struct {
	pattern *regexp.Regexp
	with    string
}{{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), `<uid>`},
	{regexp.MustCompile(`"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z"`), `"<time>"`},
	{regexp.MustCompile(`"continue": "[^"]+"`), `"continue": "<token>"`},
	{regexp.MustCompile(`Too large resource version: [0-9]+, current: [0-9]+`), `Too large resource version: <far>, current: <now>`},
}, {
	{regexp.MustCompile(`"resourceVersion": "[0-9]+"`), `"resourceVersion": "<version>"`},
	{regexp.MustCompile(`"[0-9]+s"`), `"<age>"`},
	{regexp.MustCompile(`-[a-z0-9]{5}"`), `-<random>"`},
}}

// readable makes an answer comparable: without what differs from server to
// server, and with names for versions.
func readable(body []byte, saved map[string]string, save string) string {
	var lines []string
	decoder := json.NewDecoder(bytes.NewReader(body))
	for {
		var value any
		if err := decoder.Decode(&value); err == io.EOF {
			break
		} else if err != nil {
			return strings.TrimSpace(string(body))
		}
		latest := newest(saved)
		if object, ok := value.(map[string]any); ok && save != "" {
			metadata, _ := object["metadata"].(map[string]any)
			saved[save], _ = metadata["resourceVersion"].(string)
			if token, ok := metadata["continue"].(string); ok {
				saved[save+".continue"] = token
			}
		}
		strip(value, latest)
		var text strings.Builder
		encoder := json.NewEncoder(&text)
		encoder.SetIndent("", " ")
		encoder.SetEscapeHTML(false)
		_ = encoder.Encode(value)
		lines = append(lines, strings.TrimSpace(text.String()))
	}
	text := strings.Join(lines, "\n")
	for _, a := range accidents[0] {
		text = a.pattern.ReplaceAllString(text, a.with)
	}
	names := slices.Sorted(maps.Keys(saved))
	for _, name := range names {
		if value := saved[name]; value != "" && !strings.Contains(name, ".") {
			text = regexp.MustCompile(`\b`+regexp.QuoteMeta(value)+`\b`).ReplaceAllString(text, "$$"+name)
		}
	}
	for _, a := range accidents[1] {
		text = a.pattern.ReplaceAllString(text, a.with)
	}
	return text
}

// newest is the latest version that was saved.
func newest(saved map[string]string) (version int) {
	for _, value := range saved {
		n, _ := strconv.Atoi(value)
		version = max(version, n)
	}
	return version
}

// strip removes what this server does not keep. The version of a list or a bookmark
// is that of all changes, also of those that only a real server makes: only one
// thing is certain: it is not older than what was written before.
func strip(value any, newest int) {
	switch value := value.(type) {
	case map[string]any:
		delete(value, "managedFields")
		delete(value, "storageVersionHash")
		delete(value, "serverAddressByClientCIDRs")
		if annotations, ok := value["annotations"].(map[string]any); ok && annotations["deprecated.daemonset.template.generation"] != nil {
			delete(value, "annotations")
		}
		if metadata, ok := value["metadata"].(map[string]any); ok && metadata["name"] == nil {
			text, _ := metadata["resourceVersion"].(string)
			if n, _ := strconv.Atoi(text); n > 0 && n >= newest {
				metadata["resourceVersion"] = "<now>"
			}
		}
		for _, v := range value {
			strip(v, newest)
		}
	case []any:
		for _, v := range value {
			strip(v, newest)
		}
	}
}
