package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// A request that was cancelled leaves nothing behind: a user who keeps typing, and an
// attacker, send many of them.
func TestViewsThatWereNotMadeAreNotKept(t *testing.T) {
	r := newRig(t, rigOptions{objects: manyPods(1)})
	table, _ := r.mirror.Table("pods")
	views := r.site.orders
	for range ordersAtOnce {
		views.building <- struct{}{}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for i := range 100 {
		text := fmt.Sprint("web-", i)
		q, err := parseSearch(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := views.get(gone, table, text, q, ""); !errors.Is(err, context.Canceled) {
			t.Fatalf("%s: %v", text, err)
		}
	}
	for range ordersAtOnce {
		<-views.building
	}
	if n := len(views.all); n != 0 {
		t.Errorf("%d views are kept that nobody waited for", n)
	}
	if answer := r.ask("/api/tables/pods?offset=0&q=web"); answer.Code != http.StatusOK || len(views.all) != 1 {
		t.Errorf("%d, %d views are kept", answer.Code, len(views.all))
	}
}

func TestSortIsBounded(t *testing.T) {
	r := newRig(t, rigOptions{objects: manyPods(1)})
	if answer := r.ask("/api/tables/pods?offset=0&sort=" + strings.Repeat("a", 2*maxQuery)); answer.Code != http.StatusBadRequest || len(r.site.orders.all) != 0 {
		t.Errorf("%d %s, %d views are kept", answer.Code, answer.Body, len(r.site.orders.all))
	}
}
