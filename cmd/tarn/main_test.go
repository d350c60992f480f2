package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestRunShowsAFleetAndEndsCleanly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		var out bytes.Buffer
		if err := run(ctx, &out); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"+  Albatros   at anchor (was there)",
			"~  ",
			"-  ",
			"=  fleet: watching at version ",
			"lists: map[start:1]",
			"Stopped with ",
		} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("the output lacks %q:\n%s", want, out.String())
			}
		}
	})
}
