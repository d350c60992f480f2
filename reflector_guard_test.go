package tarn_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/guard"
	"github.com/tarnproject/tarn/memory"
)

// In guard mode a handler that writes to an object panics, and the panic says which field
// of which object. Everybody can read it.
func TestGuardedHandler(t *testing.T) {
	if !guard.Supported {
		t.Skip("this system has no memory that can be made read-only")
	}
	for _, by := range []string{"option", "environment"} {
		t.Run(by, func(t *testing.T) {
			if by == "environment" {
				t.Setenv(guard.Variable, "1")
			}
			synctest.Test(t, func(t *testing.T) {
				server := parseScripted(t, "list 5: a@3\nwatch: mod a@6")
				replica, err := tarn.NewReplica(server, memory.New[*thing](), tarn.Options[*thing]{Name: "things", Guard: by == "option"})
				if err != nil {
					t.Fatal(err)
				}
				var panics []string
				if _, err := replica.Subscribe(func(c tarn.Change[*thing]) { c.Object.version = "x" }, tarn.SubscribeOptions{
					OnPanic: func(value any, stack []byte) {
						panics = append(panics, value.(string))
						if !strings.Contains(string(stack), "TestGuardedHandler") {
							t.Errorf("the stack does not show the handler:\n%s", stack)
						}
					},
				}); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				go func() { _ = replica.Run(ctx) }()
				if err := replica.WaitSynced(ctx); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if got, ok := replica.Get("a"); !ok || got.version != "6" {
					t.Errorf("the copy has %+v", got)
				}
				cancel()
				<-replica.Done()
				if len(panics) != 2 || !strings.HasPrefix(panics[0], "guard mode: a write to version of tarn_test.thing a, which is in a cache") {
					t.Errorf("the panics say %q", panics)
				}
			})
		})
	}
}
