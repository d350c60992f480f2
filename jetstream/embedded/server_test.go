package embedded

import (
	"strings"
	"testing"
)

// Two servers would damage each other's streams: a directory has one, and is free when that
// has stopped.
func TestDirectoryInUse(t *testing.T) {
	dir := t.TempDir()
	first, err := Start(Options{Dir: dir, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	if second, err := Start(Options{Dir: dir, Listen: "127.0.0.1:0"}); err == nil {
		second.Stop()
		t.Error("two servers run in one directory")
	} else if !strings.Contains(err.Error(), "another server has its streams in "+dir) {
		t.Error(err)
	}
	first.Stop()
	again, err := Start(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	again.Stop()
}

// An address that is in use is reported at once, and leaves the directory free.
func TestAddressInUse(t *testing.T) {
	first, err := Start(Options{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Stop()
	dir := t.TempDir()
	if second, err := Start(Options{Dir: dir, Listen: strings.TrimPrefix(first.URL(), "nats://")}); err == nil {
		second.Stop()
		t.Error("two servers have one address")
	} else if !strings.Contains(err.Error(), "address already in use") {
		t.Error(err)
	}
	third, err := Start(Options{Dir: dir, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	third.Stop()
}
