package apiserver

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
)

// follow collects the events of a watch until it ends.
func follow(t *testing.T, client typedcore.ConfigMapInterface, options metav1.ListOptions) []string {
	t.Helper()
	stream, err := client.Watch(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Stop()
	var told []string
	for event := range stream.ResultChan() {
		told = append(told, describe(event))
	}
	return told
}

func describe(event watch.Event) string {
	switch object := event.Object.(type) {
	case *corev1.ConfigMap:
		text := string(event.Type) + " " + object.Name + "@" + object.ResourceVersion
		if object.Annotations[metav1.InitialEventsAnnotationKey] == "true" {
			text += " end"
		}
		return text
	case *metav1.Status:
		return fmt.Sprint(event.Type, " ", object.Code, " ", object.Reason)
	}
	return fmt.Sprintf("%s %T", event.Type, event.Object)
}

func seconds(n int64) *int64 { return &n }

// A watch that allows bookmarks gets one each interval and one at its end, with the
// version of everything, so that it can continue from there after all that was
// before has been forgotten.
func TestBookmarks(t *testing.T) {
	inBubble(t, Options{BookmarkInterval: 10 * time.Second}, func(t *testing.T, server *Server) {
		clients := kubernetes.NewForConfigOrDie(protobufConfig(server)).CoreV1()
		created := must[*corev1.ConfigMap](t)(clients.ConfigMaps("default").Create(t.Context(), configMapNamed("a", nil), metav1.CreateOptions{}))
		other := must[*corev1.Secret](t)(clients.Secrets("default").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}}, metav1.CreateOptions{}))
		told := follow(t, clients.ConfigMaps("default"), metav1.ListOptions{
			ResourceVersion: created.ResourceVersion, AllowWatchBookmarks: true, TimeoutSeconds: seconds(25),
		})
		mark := "BOOKMARK @" + other.ResourceVersion
		if want := []string{mark, mark, mark}; fmt.Sprint(told) != fmt.Sprint(want) {
			t.Errorf("told %q, want %q", told, want)
		}
		server.Compact()
		told = follow(t, clients.ConfigMaps("default"), metav1.ListOptions{ResourceVersion: other.ResourceVersion, TimeoutSeconds: seconds(1)})
		if len(told) != 0 {
			t.Errorf("from a bookmark on: %q", told)
		}
		told = follow(t, clients.ConfigMaps("default"), metav1.ListOptions{ResourceVersion: created.ResourceVersion, TimeoutSeconds: seconds(1)})
		if want := "[ERROR 410 Expired]"; fmt.Sprint(told) != want {
			t.Errorf("from before the compaction: %q, want %q", told, want)
		}
	})
}

func TestInitialEvents(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, server *Server) {
		client := kubernetes.NewForConfigOrDie(protobufConfig(server)).CoreV1().ConfigMaps("default")
		a := must[*corev1.ConfigMap](t)(client.Create(t.Context(), configMapNamed("a", nil), metav1.CreateOptions{}))
		b := must[*corev1.ConfigMap](t)(client.Create(t.Context(), configMapNamed("b", nil), metav1.CreateOptions{}))
		yes := true
		told := follow(t, client, metav1.ListOptions{
			SendInitialEvents: &yes, AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, TimeoutSeconds: seconds(1),
		})
		want := []string{"ADDED a@" + a.ResourceVersion, "ADDED b@" + b.ResourceVersion, "BOOKMARK @" + b.ResourceVersion + " end"}
		if fmt.Sprint(told) != fmt.Sprint(want) {
			t.Errorf("told %q, want %q", told, want)
		}
	})
}

// The history is bounded by number and by age, and a request for more must start
// over.
func TestHistoryIsBounded(t *testing.T) {
	inBubble(t, Options{HistorySize: 10, HistoryAge: time.Hour}, func(t *testing.T, server *Server) {
		client := kubernetes.NewForConfigOrDie(server.Config()).CoreV1().ConfigMaps("default")
		start := server.Version()
		var middle string
		for i := range 20 {
			created := must[*corev1.ConfigMap](t)(client.Create(t.Context(), configMapNamed(fmt.Sprintf("c%02d", i), nil), metav1.CreateOptions{}))
			if i == 14 {
				middle = created.ResourceVersion
			}
		}
		watchFrom := func(version string) string {
			told := follow(t, client, metav1.ListOptions{ResourceVersion: version, TimeoutSeconds: seconds(1)})
			return fmt.Sprintf("%d %s", len(told), strings.Fields(told[0])[0])
		}
		if got := watchFrom(start); got != "1 ERROR" {
			t.Errorf("a watch from before the history: %s", got)
		}
		if got := watchFrom(middle); got != "5 ADDED" {
			t.Errorf("a watch from inside of it: %s", got)
		}
		exact := metav1.ListOptions{ResourceVersion: middle, ResourceVersionMatch: metav1.ResourceVersionMatchExact}
		if list, err := client.List(t.Context(), exact); err != nil || len(list.Items) != 15 {
			t.Errorf("a list inside of it: %d, %v", len(list.Items), err)
		}
		time.Sleep(2 * time.Hour)
		if got := watchFrom(middle); got != "1 ERROR" {
			t.Errorf("a watch from two hours ago: %s", got)
		}
		if _, err := client.List(t.Context(), exact); !apierrors.IsResourceExpired(err) {
			t.Errorf("a list of two hours ago: %v", err)
		}
	})
}

// A compaction affects no running watch, however far behind.
func TestCompactionSparesWatchers(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, server *Server) {
		client := kubernetes.NewForConfigOrDie(server.Config()).CoreV1().ConfigMaps("default")
		stream := must[watch.Interface](t)(client.Watch(t.Context(), metav1.ListOptions{ResourceVersion: server.Version()}))
		defer stream.Stop()
		for i := range 100 { // nobody reads
			if err := server.Put(configMapNamed(fmt.Sprint("c", i), nil)); err != nil {
				t.Fatal(err)
			}
			server.Compact()
		}
		for i := range 100 {
			event, more := <-stream.ResultChan()
			if object, ok := event.Object.(*corev1.ConfigMap); !more || !ok || object.Name != fmt.Sprint("c", i) {
				t.Fatalf("event %d is %v", i, event)
			}
		}
	})
}

// Pages show one version, whatever happens between them. When that version has been
// forgotten, the client gets an error, and may continue with the current content.
func TestExpiredPages(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, server *Server) {
		client := kubernetes.NewForConfigOrDie(server.Config()).CoreV1().ConfigMaps("default")
		for i := range 5 {
			must[*corev1.ConfigMap](t)(client.Create(t.Context(), configMapNamed(fmt.Sprintf("c%d", i), nil), metav1.CreateOptions{}))
		}
		first := must[*corev1.ConfigMapList](t)(client.List(t.Context(), metav1.ListOptions{Limit: 2}))
		if first.RemainingItemCount == nil || *first.RemainingItemCount != 3 {
			t.Errorf("remaining: %v", first.RemainingItemCount)
		}
		if err := client.Delete(t.Context(), "c2", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		must[*corev1.ConfigMap](t)(client.Create(t.Context(), configMapNamed("c9", nil), metav1.CreateOptions{}))
		second := must[*corev1.ConfigMapList](t)(client.List(t.Context(), metav1.ListOptions{Limit: 2, Continue: first.Continue}))
		if got := names(second); got != "c2 c3" || second.ResourceVersion != first.ResourceVersion {
			t.Errorf("second page: %s at %s", got, second.ResourceVersion)
		}
		server.Compact()
		_, err := client.List(t.Context(), metav1.ListOptions{Limit: 2, Continue: second.Continue})
		status, ok := err.(apierrors.APIStatus)
		if !apierrors.IsResourceExpired(err) || !ok || status.Status().ListMeta.Continue == "" {
			t.Fatalf("third page: %v", err)
		}
		third := must[*corev1.ConfigMapList](t)(client.List(t.Context(), metav1.ListOptions{Limit: 9, Continue: status.Status().ListMeta.Continue}))
		if got := names(third); got != "c4 c9" || third.ResourceVersion != server.Version() {
			t.Errorf("the rest: %s at %s", got, third.ResourceVersion)
		}
	})
}

func names(list *corev1.ConfigMapList) string {
	var found []string
	for _, item := range list.Items {
		found = append(found, item.Name)
	}
	return strings.Join(found, " ")
}
