package relay

import (
	"bufio"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"weak"

	"github.com/tarnproject/tarn/apiserver"
)

// An open watch does not keep the objects in memory that it began with: a watch lasts for up
// to an hour, and objects change.
func TestInitialObjectsAreLetGo(t *testing.T) {
	r := newRigWith(t, Options{LogBytes: 1}, func(r *rig) { r.put(pod("a", "1")) })
	response, err := http.Get(r.url + "/api/v1/pods?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=0")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	events := bufio.NewScanner(response.Body)
	read := func(text string) {
		t.Helper()
		for events.Scan() {
			if strings.Contains(events.Text(), text) {
				return
			}
		}
		t.Fatalf("%s was not sent: %v", text, events.Err())
	}
	read("initial-events-end")
	first := func() weak.Pointer[apiserver.Object] {
		s := r.copy(pods, "").state
		s.mu.RLock()
		defer s.mu.RUnlock()
		return weak.Make(s.content.get("default/a"))
	}()
	for _, label := range []string{"2", "3", "4"} {
		r.put(pod("a", label))
		read(`"l":"` + label + `"`)
	}
	r.settle()
	read("settle")
	for range 10 {
		if runtime.GC(); first.Value() == nil {
			return
		}
	}
	t.Error("the first state of the object is still in memory")
}
