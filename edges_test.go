package tarn_test

import (
	"context"
	"strings"
	"testing"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/memory"
)

// TestEdges tells what happens when two things go wrong at once, and how stores of
// other kinds are called.
func TestEdges(t *testing.T) { tellStories(t, "edges") }

// TestStopFromEveryState stops a replica at each kind of wait: each of these stories
// ends there.
func TestStopFromEveryState(t *testing.T) { tellStories(t, "stop") }

// TestWhatIsMissingIsKept shows how a store learns with each state whether something is
// missing from it, TestEpochs how it learns which versions can be compared.
func TestWhatIsMissingIsKept(t *testing.T) { tellStories(t, "missing") }
func TestEpochs(t *testing.T)              { tellStories(t, "epochs") }

func TestReflectorRunsOnce(t *testing.T) {
	r, err := tarn.NewReflector[*thing](parseScripted(t, "list hang"), memory.New[*thing](), tarn.Options[*thing]{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = r.Run(ctx)
	if err := r.Run(ctx); err == nil || !strings.Contains(err.Error(), "started before") {
		t.Errorf("the second Run returned %v", err)
	}
}
