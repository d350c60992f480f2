package apiserver

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"pgregory.net/rapid"
)

// TestModel makes changes at random beside a plain map of what is there after
// each, and then asks for the past in every way: exact lists, pages and watches
// from every version must agree with the map, also through a selector.
func TestModel(t *testing.T) {
	change := rapid.Custom(func(rt *rapid.T) [2]string {
		return [2]string{
			rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(rt, "name"),
			rapid.SampledFrom([]string{"x", "y", ""}).Draw(rt, "label"),
		}
	})
	rapid.Check(t, func(rt *rapid.T) {
		changes := rapid.SliceOfN(change, 1, 30).Draw(rt, "changes")
		var err error
		synctest.Test(t, func(*testing.T) { err = compareWithModel(changes) })
		if err != nil {
			rt.Fatal(err)
		}
	})
}

func compareWithModel(changes [][2]string) error {
	server := New(Options{})
	defer server.Close()
	client := kubernetes.NewForConfigOrDie(server.Config()).CoreV1().ConfigMaps("default")
	now := map[string]string{}
	past := map[string]map[string]string{server.Version(): {}}
	versions := []string{server.Version()}
	for _, change := range changes {
		name, label := change[0], change[1]
		if _, there := now[name]; label == "" && there {
			if err := server.Delete(configMapNamed(name, nil)); err != nil {
				return err
			}
			delete(now, name)
		} else if label != "" {
			if err := server.Put(configMapNamed(name, map[string]string{"l": label})); err != nil {
				return err
			}
			now[name] = label
		}
		if version := server.Version(); past[version] == nil {
			past[version] = maps.Clone(now)
			versions = append(versions, version)
		}
	}
	for _, version := range versions {
		for _, selector := range []string{"", "l=x", "l!=x"} {
			want := chosen(past[version], selector)
			if got, err := listAt(client, version, selector); err != nil || !maps.Equal(got, want) {
				return fmt.Errorf("list at %s by %q: %v, %w, want %v", version, selector, got, err, want)
			}
			want = chosen(now, selector)
			if got, err := replay(server, version, selector, chosen(past[version], selector)); err != nil || !maps.Equal(got, want) {
				return fmt.Errorf("watch from %s by %q leads to %v, %w, want %v", version, selector, got, err, want)
			}
		}
	}
	return nil
}

func chosen(all map[string]string, selector string) map[string]string {
	parsed, _ := labels.Parse(selector)
	some := map[string]string{}
	for name, label := range all {
		if parsed.Matches(labels.Set{"l": label}) {
			some[name] = label
		}
	}
	return some
}

// listAt reads everything at a version, in pages of two.
func listAt(client typedcore.ConfigMapInterface, version, selector string) (map[string]string, error) {
	found := map[string]string{}
	options := metav1.ListOptions{ResourceVersion: version, ResourceVersionMatch: metav1.ResourceVersionMatchExact, LabelSelector: selector, Limit: 2}
	for {
		list, err := client.List(context.Background(), options)
		if err != nil {
			return nil, err
		}
		if list.ResourceVersion != version {
			return nil, fmt.Errorf("the list says that it is at %s", list.ResourceVersion)
		}
		for _, item := range list.Items {
			found[item.Name] = item.Labels["l"]
		}
		if list.Continue == "" {
			return found, nil
		}
		options = metav1.ListOptions{LabelSelector: selector, Limit: 2, Continue: list.Continue}
	}
}

// replay applies the events of a watch to a state, and refuses what does not fit.
func replay(server *Server, version, selector string, state map[string]string) (map[string]string, error) {
	query := url.Values{"watch": {"1"}, "timeoutSeconds": {"1"}, "resourceVersion": {version}, "labelSelector": {selector}}
	request, err := http.NewRequest(http.MethodGet, "http://server/api/v1/namespaces/default/configmaps?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	response, err := server.transport().RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		var event struct {
			Type   string
			Object corev1.ConfigMap
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			return nil, err
		}
		_, there := state[event.Object.Name]
		if there != (event.Type != "ADDED") {
			return nil, fmt.Errorf("%s of %s, of which there is %v", event.Type, event.Object.Name, state)
		}
		if event.Type == "DELETED" {
			delete(state, event.Object.Name)
		} else {
			state[event.Object.Name] = event.Object.Labels["l"]
		}
	}
	return state, lines.Err()
}
