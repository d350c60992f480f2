package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/tarnproject/tarn/internal/guard"
)

var guardExplained atomic.Bool

// An address of a process in guard mode is explained by the record that it wrote.
func TestGuardExplain(t *testing.T) {
	if !guardExplained.CompareAndSwap(false, true) {
		t.Skip("a process has one record, which was made where the first run wanted it")
	}
	if !guard.Supported {
		t.Skip("this system has no memory that can be made read-only")
	}
	t.Setenv("TMPDIR", t.TempDir())
	if err := alone(t, "guard", "explain", "0x1").check(exitFailed, "there is no record"); err != nil {
		t.Error(err)
	}
	session, err := guard.NewSession("ships")
	if err != nil {
		t.Fatal(err)
	}
	type ship struct{ Name, Harbour string }
	frozen, err := session.Freeze("fram", &ship{"Fram", "Oslo"})
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("%#x", uintptr(unsafe.Pointer(&frozen.(*ship).Harbour)))
	files, err := filepath.Glob(filepath.Join(os.TempDir(), "tarn-guard-*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("records: %v, %v", files, err)
	}
	for _, args := range [][]string{{address}, {address[2:], "--file", files[0]}} {
		if got := alone(t, append([]string{"guard", "explain"}, args...)...); got.out != "Harbour of cli.ship fram\n" || got.code != exitOK {
			t.Errorf("%v: %s", args, got)
		}
	}
	if err := alone(t, "guard", "explain", "0x1").check(exitFailed, "is not the address of an object"); err != nil {
		t.Error(err)
	}
	if err := alone(t, "guard", "explain", "here").check(exitFailed, `"here" is not an address`); err != nil {
		t.Error(err)
	}
}
