package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/tarnproject/tarn/bench/report"
)

// The test binary serves as the child, with scenarios that exist only here.
func TestMain(m *testing.M) {
	scenarios = append(scenarios,
		scenario{name: "self-pid", run: map[string]func(context.Context, *meter) error{
			"client-go": func(_ context.Context, m *meter) error {
				m.record("pid", float64(os.Getpid()), report.Number)
				return nil
			},
		}},
		scenario{name: "self-half", run: map[string]func(context.Context, *meter) error{
			"client-go": func(_ context.Context, m *meter) error {
				m.record("figure", 1, report.Number)
				return nil
			},
			"tarn": func(context.Context, *meter) error { return errors.New("out of luck") },
		}},
		scenario{name: "self-failing", run: map[string]func(context.Context, *meter) error{
			"client-go": func(context.Context, *meter) error { return errors.New("out of luck") },
		}},
	)
	if ran, err := runAsChild(); ran {
		exit(err)
	}
	os.Exit(m.Run())
}

func TestEachRunIsAProcessOfItsOwn(t *testing.T) {
	seen := map[float64]bool{float64(os.Getpid()): true}
	for range 2 {
		r, err := runChild(t.Context(), task{Scenario: "self-pid", Contender: "client-go"})
		if err != nil {
			t.Fatal(err)
		}
		if len(r) != 1 || r[0].Name != "pid" || r[0].Unit != report.Number {
			t.Fatalf("result %v, want the one measure that the child recorded", r)
		}
		if seen[r[0].Value] {
			t.Errorf("process %v served twice", r[0].Value)
		}
		seen[r[0].Value] = true
	}
}

func TestAFailedChildSaysWhy(t *testing.T) {
	for task, want := range map[task]string{
		{Scenario: "self-failing", Contender: "client-go"}: "out of luck",
		{Scenario: "self-pid", Contender: "nobody"}:        "names no scenario and contender",
		{Scenario: "nothing", Contender: "client-go"}:      "names no scenario and contender",
		{Scenario: "protobuf", Contender: "nobody"}:        "names no scenario and contender",
	} {
		_, err := runChild(t.Context(), task)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), task.String()) {
			t.Errorf("%s: error %v, want it to name the task and to say %q", task, err, want)
		}
	}
}

func TestCancellingEndsTheChild(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if _, err := runChild(ctx, task{Scenario: "self-pid", Contender: "client-go"}); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("error %v, want the cancellation's cause", err)
	}
}
