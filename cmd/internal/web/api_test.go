package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tarnproject/tarn/cmd/internal/mirror"
)

func keys(a rowsAnswer) []string {
	found := []string{}
	for _, row := range a.Rows {
		found = append(found, string(row.Key))
	}
	return found
}

func TestRows(t *testing.T) {
	r := newRig(t, rigOptions{objects: []runtime.Object{
		pod("default", "web-1"), pod("default", "web-2", phase(corev1.PodPending)), pod("shop", "api-1"),
		pod("shop", "db-1", func(p *corev1.Pod) { p.Spec.NodeName = "node-0"; p.Labels["tier"] = "Store" }),
	}})
	all := []string{"default/web-1", "default/web-2", "shop/api-1", "shop/db-1"}
	for _, test := range []struct {
		query string
		want  []string
	}{
		{"", all},
		{"q=web", []string{"default/web-1", "default/web-2"}},
		{"q=shop/", []string{"shop/api-1", "shop/db-1"}},
		{"q=SHOP db", []string{"shop/db-1"}},
		{"q=store", []string{"shop/db-1"}},
		{"q=app=api", []string{"shop/api-1"}},
		{"q=app in (api,db)", []string{"shop/api-1", "shop/db-1"}},
		{"q=!tier web", []string{"default/web-1", "default/web-2"}},
		{"q=status.phase!=Running", []string{"default/web-2"}},
		{"q=.spec.nodeName=node-0", []string{"shop/db-1"}},
		{"q=nothing-like-it", []string{}},
		{"sort=-metadata.name", []string{"default/web-2", "default/web-1", "shop/db-1", "shop/api-1"}},
		{"sort=spec.nodeName", []string{"shop/db-1", "default/web-1", "default/web-2", "shop/api-1"}},
		{"q=web&sort=-metadata.name", []string{"default/web-2", "default/web-1"}},
	} {
		for _, way := range []string{"", "&offset=0"} {
			path := "/api/tables/pods?" + strings.ReplaceAll(test.query, " ", "%20") + way
			if diff := cmp.Diff(test.want, keys(get[rowsAnswer](r, path))); diff != "" {
				t.Errorf("%s: want -, got +\n%s", path, diff)
			}
		}
	}
	first := get[rowsAnswer](r, "/api/tables/pods?limit=1")
	got := map[string]string{}
	for i, c := range first.Columns {
		got[c.Name] = first.Rows[0].Cells[i]
	}
	delete(got, "Age")
	want := map[string]string{"Namespace": "default", "Name": "web-1", "Ready": "0/1", "Status": "Running", "Restarts": "", "Node": "node-1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
}

// By token and by place, in pages of any size, every object comes once.
func TestRowsPages(t *testing.T) {
	var objects []runtime.Object
	var want []string
	for i := range 57 {
		name := fmt.Sprintf("web-%03d", i)
		if i%3 == 0 {
			name = fmt.Sprintf("api-%03d", i)
		}
		objects = append(objects, pod("default", name))
	}
	r := newRig(t, rigOptions{objects: objects})
	for _, query := range []url.Values{{}, {"q": {"web"}}, {"q": {"web"}, "sort": {"-metadata.name"}}, {"sort": {"metadata.uid"}}} {
		query.Set("limit", "1000")
		want = keys(get[rowsAnswer](r, "/api/tables/pods?"+query.Encode()))
		query.Set("limit", "10")
		var byToken, byPlace []string
		for {
			page := get[rowsAnswer](r, "/api/tables/pods?"+query.Encode())
			byToken = append(byToken, keys(page)...)
			if page.Continue == "" {
				break
			}
			query.Set("continue", page.Continue)
		}
		query.Del("continue")
		for offset := 0; ; offset += 10 {
			query.Set("offset", fmt.Sprint(offset))
			page := get[rowsAnswer](r, "/api/tables/pods?"+query.Encode())
			byPlace = append(byPlace, keys(page)...)
			if *page.Total != len(want) {
				t.Fatalf("%v: %d in all, want %d", query, *page.Total, len(want))
			}
			if offset+10 >= *page.Total {
				break
			}
		}
		if diff := cmp.Diff(want, byToken); diff != "" {
			t.Errorf("%v by token: want -, got +\n%s", query, diff)
		}
		if diff := cmp.Diff(want, byPlace); diff != "" {
			t.Errorf("%v by place: want -, got +\n%s", query, diff)
		}
	}
}

func TestObject(t *testing.T) {
	r := newRig(t, rigOptions{objects: []runtime.Object{replicaSet("default", "web")}})
	table, _ := r.mirror.Table("replicasets.apps")
	set, ok := table.Store().Get("default/web")
	if !ok {
		t.Fatal("the ReplicaSet is not mirrored")
	}
	r.put(pod("default", "web-1", ownedBy("ReplicaSet", "web", set.GetUID())), pod("default", "web-2", ownedBy("ReplicaSet", "web", "another")))

	owner := get[objectAnswer](r, "/api/objects/replicasets.apps/default/web")
	want := []dependents{{Table: "pods", Kind: "Pod", Count: 1, Links: []link{{Kind: "Pod", Name: "web-1", Table: "pods", Key: "default/web-1", Status: "Running"}}}}
	if diff := cmp.Diff(want, owner.Dependents); diff != "" {
		t.Errorf("dependents: want -, got +\n%s", diff)
	}
	for key, want := range map[string]link{
		"web-1": {Kind: "ReplicaSet", Name: "web", Table: "replicasets.apps", Key: "default/web"},
		"web-2": {Kind: "ReplicaSet", Name: "web"}, // its owner was another one of that name
	} {
		owned := get[objectAnswer](r, "/api/objects/pods/default/"+key)
		if diff := cmp.Diff([]link{want}, owned.Owners); diff != "" {
			t.Errorf("owners of %s: want -, got +\n%s", key, diff)
		}
	}
	answer := r.ask("/api/objects/pods/default/web-1?as=yaml")
	if !strings.HasPrefix(answer.Body.String(), "apiVersion: v1\nkind: Pod\n") || !strings.HasPrefix(answer.Header().Get("Content-Type"), "application/yaml") {
		t.Errorf("YAML is %s %q", answer.Header().Get("Content-Type"), answer.Body)
	}
}

func TestOverview(t *testing.T) {
	r := newRig(t, rigOptions{web: Options{Name: "here"}, objects: []runtime.Object{pod("default", "web-1")}})
	found := get[overview](r, "/api/tables?history=1")
	pods := found.Tables[0]
	if found.Name != "here" || pods.Name != "pods" || pods.Objects != 1 || !pods.Synced || !pods.Fresh || pods.Relists["start"] != 1 || pods.History == nil {
		t.Errorf("got %+v", found)
	}
	at := time.Unix(1_800_000_000, 0)
	h := historyOf([]mirror.Sample{{Time: at, Objects: 3, EventsPerSecond: 1.23456, Age: time.Second, Lag: 2340 * time.Microsecond, BytesPerObject: 70}})
	want := &history{Times: []int64{at.Unix()}, Objects: []int{3}, Events: []float64{1.235}, Ages: []float64{1}, Lags: []float64{0.00234}, Bytes: []int{70}}
	if diff := cmp.Diff(want, h); diff != "" {
		t.Errorf("the history (-want +got):\n%s", diff)
	}
	if got := get[problemsAnswer](r, "/api/problems"); len(got.Problems)+len(got.Bad) != 0 {
		t.Errorf("problems: %+v", got)
	}
}

func TestBadInput(t *testing.T) {
	r := newRig(t, rigOptions{objects: []runtime.Object{pod("default", "web-1"), pod("default", "web-2")}})
	token := get[rowsAnswer](r, "/api/tables/pods?limit=1").Continue
	for path, want := range map[string]struct {
		status int
		text   string
	}{
		"/api/tables/nonsense":                             {404, `there are pods, replicasets.apps`},
		"/api/tables/%00":                                  {404, "is not mirrored"},
		"/api/tables?history=x":                            {400, "history"},
		"/api/tables/pods?q=tier+in+(a":                    {400, "closing )"},
		"/api/tables/pods?q=spec.replicas%3Ex":             {400, "a number"},
		"/api/tables/pods?sort=a[":                         {400, "a["},
		"/api/tables/pods?sort=metadata.labels":            {400, "has no order"},
		"/api/tables/pods?sort=metadata.labels&offset=0":   {400, "has no order"},
		"/api/tables/pods?limit=0":                         {400, "limit=0: a number from 1 to 1000"},
		"/api/tables/pods?limit=1e9":                       {400, "limit=1e9"},
		"/api/tables/pods?offset=-1":                       {400, "offset=-1"},
		"/api/tables/pods?continue=rubbish":                {400, "token"},
		"/api/tables/pods?sort=kind&continue=" + token:     {400, "token"},
		"/api/tables/pods?offset=1&continue=" + token:      {400, "two ways"},
		"/api/objects/pods/default/none":                   {404, "there is no"},
		"/api/objects/pods/":                               {404, "there is no"},
		"/api/objects/pods/default/web-1?as=xml":           {400, "as=xml"},
		"/api/objects/nonsense/x":                          {404, "is not mirrored"},
		"/api/events?table=nonsense":                       {404, "is not mirrored"},
		"/api/events?object=pods":                          {400, "a table and a key"},
		"/api/events?object=nonsense/x":                    {404, "is not mirrored"},
		"/api/":                                            {404, "is nothing here"},
		"/api/other":                                       {404, "is nothing here"},
		"/debug/pprof/":                                    {404, "is nothing here"},
		"/static/none.js":                                  {404, "the page is at /"},
		"/none":                                            {404, "the page is at /"},
		"/api/tables/pods?q=" + strings.Repeat("a", 2_000): {400, "2000 bytes"},
	} {
		answer := r.ask(path)
		if answer.Code != want.status || !strings.Contains(answer.Body.String(), want.text) || !strings.HasPrefix(answer.Body.String(), `{"error":`) {
			t.Errorf("%s: %d %s, want %d with %q", path, answer.Code, answer.Body, want.status, want.text)
		}
	}
}

func TestProfilesOnlyIfAsked(t *testing.T) {
	r := newRig(t, rigOptions{web: Options{Profiles: true}})
	if answer := r.ask("/debug/pprof/"); answer.Code != http.StatusOK || !strings.Contains(answer.Body.String(), "goroutine") {
		t.Errorf("%d %s", answer.Code, answer.Body)
	}
}

func TestMetrics(t *testing.T) {
	r := newRig(t, rigOptions{objects: []runtime.Object{pod("default", "web-1")}})
	answer := r.ask("/metrics")
	for _, want := range []string{`tarn_objects{replica="pods"} 1`, `tarn_lists_total{cause="start",replica="pods"} 1`, "go_goroutines"} {
		if !strings.Contains(answer.Body.String(), want) {
			t.Errorf("no %s in\n%s", want, answer.Body)
		}
	}
	own := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	if answer := newRig(t, rigOptions{web: Options{Metrics: own}}).ask("/metrics"); answer.Code != http.StatusTeapot {
		t.Errorf("a handler of one's own is not asked: %d", answer.Code)
	}
}

// Every mirror, also one that two sites show, is indexed once.
func TestTwoSites(t *testing.T) {
	r := newRig(t, rigOptions{})
	if _, err := New(r.mirror, Options{}); err != nil {
		t.Error(err)
	}
	if _, err := New(nil, Options{}); err == nil {
		t.Error("no mirror is taken for one")
	}
}

// A view follows the store, and names an object that went while it was kept.
func TestViews(t *testing.T) {
	r := newRig(t, rigOptions{objects: []runtime.Object{pod("default", "a"), pod("default", "b")}})
	now := r.site.orders.now()
	r.site.orders.now = func() time.Time { return now }
	const path = "/api/tables/pods?offset=0"
	get[rowsAnswer](r, path)
	r.remove(pod("default", "a"))
	found := get[rowsAnswer](r, path)
	if diff := cmp.Diff([]string{"default/a", "default/b"}, keys(found)); diff != "" || !found.Behind || !found.Rows[0].Gone || found.Rows[1].Gone {
		t.Errorf("while the order is kept: %+v", found.Rows)
	}
	now = now.Add(orderRest)
	if diff := cmp.Diff([]string{"default/b"}, keys(get[rowsAnswer](r, path))); diff != "" {
		t.Errorf("later: want -, got +\n%s", diff)
	}
	for i := range 50 {
		get[rowsAnswer](r, fmt.Sprintf("/api/tables/pods?offset=0&q=x%d", i))
	}
	now = now.Add(2 * orderIdle)
	get[rowsAnswer](r, path)
	if n := len(r.site.orders.all); n != 1 {
		t.Errorf("%d views are kept that nobody asks for", n)
	}
}

func TestViewsAreBounded(t *testing.T) {
	v := newOrderCache()
	for i := range 10 {
		at := v.entry(orderKey{table: fmt.Sprint(i)})
		at.used = at.used.Add(time.Duration(i))
		v.account(at, maxOrderedKeys/4-orderOverhead)
	}
	if n := len(v.all); n != 4 {
		t.Errorf("%d views of a quarter of the bound each, want 4", n)
	}
	if _, kept := v.all[orderKey{table: "9"}]; !kept {
		t.Error("the newest went first")
	}
}

func TestColumnsOfEveryKind(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}}}
	waiting := pod("default", "w", func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", RestartCount: 4, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}
	})
	r := newRig(t, rigOptions{objects: []runtime.Object{node, waiting}})
	for path, want := range map[string]map[string]string{
		"/api/tables/nodes": {"Status": "NotReady"},
		"/api/tables/pods":  {"Status": "CrashLoopBackOff", "Restarts": "4", "Ready": "0/1"},
	} {
		found := get[rowsAnswer](r, path)
		for i, c := range found.Columns {
			if text, asked := want[c.Name]; asked && found.Rows[0].Cells[i] != text {
				t.Errorf("%s %s: %q, want %q", path, c.Name, found.Rows[0].Cells[i], text)
			}
		}
	}
}
