package faults_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/faults"
)

func ExampleSource() {
	plan := faults.New(42, faults.Mix{faults.BusyFor: 1})
	source := faults.Source(newServer("a", "b"), plan, faults.SourceOptions[*thing]{Name: "things"})

	_, err := source.List(context.Background(), tarn.ListQuery{})
	fmt.Println(err)
	fmt.Println(tarn.ReasonOf(err), tarn.RetryAfter(err) > 0, errors.Is(err, faults.ErrInjected))

	plan.End()
	page, err := source.List(context.Background(), tarn.ListQuery{})
	fmt.Println(page.Items, err)
	// Output:
	// injected: 429: too many requests
	// busy true true
	// [a@1 b@2] <nil>
}

// One day without its stalls: everything else stays where it was.
func ExampleNew() {
	const seed = 4117
	mix := faults.Random(seed).Mix()
	delete(mix, faults.Stall)
	plan := faults.New(seed, mix).
		Within(faults.Limits{Delay: time.Second, Hang: time.Minute}).
		Until(time.Now().Add(time.Hour))
	fmt.Println(plan.Seed(), plan.Mix()[faults.Stall])
	// Output: 4117 0
}

// A day of many faults is reduced to the one that matters, by sparing the others.
func ExamplePlan_Suppress() {
	fails := func(plan *faults.Plan) bool {
		source := faults.Source(newServer("a"), plan, faults.SourceOptions[*thing]{})
		for range 200 {
			_, err := source.List(context.Background(), tarn.ListQuery{})
			if errors.Is(err, tarn.ErrNoList) {
				return true
			}
		}
		return false
	}
	mix := faults.Mix{faults.Refuse: 0.1, faults.Internal: 0.1, faults.NoList: 0.05}
	day := faults.New(1, mix)
	fmt.Println(fails(day), len(day.History()) > 3)

	var matters []faults.Place
	for _, fault := range day.History() {
		only := func(at faults.Place) bool { return at != fault.Place }
		if fails(faults.New(1, mix).Suppress(only)) {
			matters = append(matters, fault.Place)
		}
	}
	fmt.Println(len(matters), matters[0].Kind)
	// Output:
	// true true
	// 1 no list
}

func ExamplePlan_Rewind() {
	plan := faults.New(1, faults.Mix{faults.Wipe: 1})
	server := newServer("a", "b")
	if back, ok := plan.Rewind("things", server.now()); ok {
		server.rewind(back)
	}
	fmt.Println(server.state())
	fmt.Println(plan.History()[0].Kind, plan.History()[0].Of)
	// Output:
	// map[]
	// wipe after 2 writes
}

func ExampleTransport() {
	plan := faults.New(1, faults.Mix{faults.Expire: 1})
	client := &http.Client{Transport: faults.Transport(http.DefaultTransport, plan, faults.TransportOptions{
		Status: func(code int) (string, []byte) {
			return "application/json", fmt.Appendf(nil, `{"kind":"Status","status":"Failure","code":%d}`, code)
		},
	})}
	response, err := client.Get("http://pods.example/api/v1/pods?watch=1")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer response.Body.Close()
	fmt.Println(response.Status)
	fmt.Println(plan.History()[0].Of)
	// Output:
	// 410 Gone
	// GET /api/v1/pods?watch=1
}

func ExampleListener() {
	plan := faults.New(1, faults.Mix{faults.Reset: 1}).Within(faults.Limits{Bytes: 100})
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	server := &httptest.Server{
		Listener: faults.Listener(inner, plan, "front"),
		Config:   &http.Server{Handler: http.NotFoundHandler()},
	}
	server.Start()
	defer server.Close()
	_, err = server.Client().Get(server.URL)
	fmt.Println(err != nil, plan.History().Counts()[faults.Reset] > 0)
	// Output: true true
}
