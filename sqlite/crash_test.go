package sqlite

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/testsize"
)

var (
	crashes = testsize.Flag("crashes", 8, 3, "how often TestKill kills its child")
	seeds   = testsize.Flag("seeds", 3, 1, "how much TestDamage, TestPowerLoss and the suite of logs try")
)

const crashEnvironment = "TARN_TEST_CRASH"

// TestKill kills a process that writes, at random moments, and looks each time
// whether the file holds a state that there was. The child is this test again.
func TestKill(t *testing.T) {
	if dir := os.Getenv(crashEnvironment); dir != "" {
		writeForEver(t, dir)
	}
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	dir := directory(t)
	moved, last := 0, tarn.Version("")
	for i := range crashes() {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKill$")
		cmd.Env = append(os.Environ(), crashEnvironment+"="+dir)
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		ready := make([]byte, 1)
		if _, err := out.Read(ready); err != nil {
			t.Fatalf("crash %d: the child did not come up: %v, %v", i, err, cmd.Wait())
		}
		time.Sleep(time.Duration(random.IntN(120)) * time.Millisecond) // real time: another process runs
		must(t, cmd.Process.Kill())
		_ = cmd.Wait() // it was killed

		db := open(t, dir, Options{})
		s := openStore(t, db)
		at, err := strconv.Atoi("0" + string(s.Version()))
		must(t, err)
		h := newHistory(1)
		for range at {
			h.step()
		}
		v := h.verify(t, s)
		if v.OlderThan(last) {
			t.Errorf("crash %d: the file went back from %s to %s", i, last, v)
		}
		if v != last {
			moved++
		}
		last = v
		if n := len(reports(t, dir)); n > 0 {
			t.Fatalf("crash %d: the file was found damaged", i)
		}
		must(t, db.Close())
		if t.Failed() {
			return
		}
	}
	if moved < crashes()/2 {
		t.Errorf("of %d children only %d wrote anything", crashes(), moved)
	}
	t.Logf("%d crashes, at version %s", crashes(), last)
}

// writeForEver continues the history from the state of the file: by the process id in
// the store on disk or through a copy in memory.
func writeForEver(t *testing.T, dir string) {
	db, err := Open(dir, Options{Logger: quiet, GroupDelay: time.Millisecond})
	must(t, err)
	must(t, db.writer.Exec("PRAGMA wal_autocheckpoint=50"))
	s := openStore(t, db)
	at, err := strconv.Atoi("0" + string(s.Version()))
	must(t, err)
	h := newHistory(1)
	for range at {
		h.step()
	}
	var store tarn.ReadStore[thing] = s
	if os.Getpid()%2 == 0 {
		b := follow(t, s)
		_, err := b.Restore(t.Context())
		must(t, err)
		store = b
	}
	fmt.Print("!")
	for {
		changes, v := h.step()
		must(t, store.Apply(changes, tarn.At(v)))
		if os.Getpid()%2 == 0 {
			time.Sleep(time.Duration(rand.IntN(500)) * time.Microsecond) // so that groups end
		}
	}
}
