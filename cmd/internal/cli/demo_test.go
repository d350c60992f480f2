package cli

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarnproject/tarn/cmd/internal/term"
	"github.com/tarnproject/tarn/cmd/internal/term/termtest"
	"go.uber.org/goleak"
)

// demoRun is how a demonstration went.
type demoRun struct {
	code        int
	out, errOut string
}

// runDemo runs the command, in a terminal if there is one, and interrupts it when
// the text appears.
func runDemo(t *testing.T, screen *screenBuffer, interruptAt string, args ...string) demoRun {
	t.Helper()
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var errOut bytes.Buffer
	out := &alarm{text: interruptAt, ring: cancel}
	a := &app{
		program: "tarn", in: strings.NewReader(""), out: out, errOut: &errOut,
		getenv:   func(string) (string, bool) { return "", false },
		terminal: func() (term.Terminal, bool) { return screen, screen != nil },
	}
	if screen != nil {
		a.out = screen
	}
	code := a.main(ctx, append([]string{"demo"}, args...))
	return demoRun{code, out.String(), errOut.String()}
}

// alarm is a buffer that rings when some text has been written.
type alarm struct {
	mu   sync.Mutex
	text string
	ring func()
	buf  bytes.Buffer
}

func (a *alarm) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n, err := a.buf.Write(p)
	if a.text != "" && strings.Contains(a.buf.String(), a.text) {
		a.ring()
	}
	return n, err
}

func (a *alarm) String() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.buf.String()
}

// screenBuffer is a terminal of 100 by 30.
type screenBuffer struct{ alarm }

func (*screenBuffer) Size() (width, height int) { return 100, 30 }
func (*screenBuffer) Colour() bool              { return false }

var kubeconfigLine = regexp.MustCompile(`export KUBECONFIG=(\S+)`)

func TestDemo(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	run := runDemo(t, nil, "of 13 resources in", "--pods", "30", "--crs", "3", "--rate", "50", "--listen", "127.0.0.1:0")
	if run.code != exitOK || run.errOut != "" {
		t.Errorf("exit code %d: %s", run.code, run.errOut)
	}
	for _, want := range []string{"30 pods on", "see it      http://127.0.0.1:", "tarn sql --from ", "pods: synced,", "databases.demo.tarn.dev: synced, 3 objects", "Ended after", "all 13 copies equal the server"} {
		if !strings.Contains(run.out, want) {
			t.Errorf("does not say %q:\n%s", want, run.out)
		}
	}
	if link := regexp.MustCompile(`see it      http://127\.0\.0\.1:\d+/#token=[0-9a-f]{32}\n`); !link.MatchString(run.out) {
		t.Errorf("there is no link that signs in:\n%s", run.out)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
	if file := kubeconfigLine.FindStringSubmatch(run.out); file == nil || filepath.Dir(file[1]) != os.TempDir() {
		t.Errorf("no kubeconfig in %s: %q", os.TempDir(), file)
	}
}

// The demonstration keeps its copy on disk, where SQL is asked while it runs, and other
// clients find its server by the kubeconfig.
func TestDemoAnswersSQL(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	program := func(out *alarm) *app {
		return &app{
			program: "tarn", in: strings.NewReader(""), out: out, errOut: out,
			getenv:   func(string) (string, bool) { return "", false },
			terminal: func() (term.Terminal, bool) { return nil, false },
		}
	}
	synced := make(chan struct{})
	shown := &alarm{text: "of 13 resources in", ring: sync.OnceFunc(func() { close(synced) })}
	ended := make(chan int)
	go func() {
		ended <- program(shown).main(ctx, []string{"demo", "--pods", "30", "--rate", "0", "--listen", "127.0.0.1:0"})
	}()
	<-synced
	directory := regexp.MustCompile(`sql --from (\S+)`).FindStringSubmatch(shown.String())
	if directory == nil {
		t.Fatalf("no directory is named:\n%s", shown)
	}
	nodes := new(alarm)
	if code := program(nodes).main(ctx, []string{"get", "nodes", "--kubeconfig", kubeconfigLine.FindStringSubmatch(shown.String())[1]}); code != exitOK {
		t.Errorf("its kubeconfig leads to %s", nodes)
	}
	// What is synced is on disk a moment later.
	var answer string
	for wait := time.Now().Add(30 * time.Second); time.Now().Before(wait) && !strings.Contains(answer, "\n30\n"); {
		out := new(alarm)
		program(out).main(ctx, []string{"sql", "--from", directory[1], "-o", "csv", "SELECT count(*) AS pods FROM pods"})
		answer = out.String()
	}
	if !strings.Contains(answer, "\n30\n") {
		t.Errorf("SQL answers\n%s", answer)
	}
	cancel()
	if code := <-ended; code != exitOK {
		t.Errorf("exit code %d:\n%s", code, shown)
	}
}

func TestDemoEndsByItself(t *testing.T) {
	run := runDemo(t, nil, "", "--for", "500ms", "--pods", "20", "--rate", "0", "--listen", "127.0.0.1:0", "--no-page-token")
	if strings.Contains(run.out, "#token") {
		t.Errorf("there is a token though none was wanted:\n%s", run.out)
	}
	if run.code != exitOK || run.errOut != "" || !strings.Contains(run.out, "Ended after 0 changes: ") {
		t.Errorf("exit code %d: %s\n%s", run.code, run.errOut, run.out)
	}
}

func TestDemoFaults(t *testing.T) {
	run := runDemo(t, nil, "", "--for", "3s", "--interval", "1s", "--pods", "30", "--rate", "50", "--faults", "--fault-seed", "7", "--listen", "127.0.0.1:0")
	if run.code != exitOK {
		t.Errorf("exit code %d: %s", run.code, run.errOut)
	}
	for _, want := range []string{"faults of seed 7", "injected faults: ", "of 13 copies equal|all 13 copies equal"} {
		if !regexp.MustCompile(want).MatchString(run.out) {
			t.Errorf("does not say %q:\n%s", want, run.out)
		}
	}
	if strings.Contains(run.out, "DIFFERENT") {
		t.Error(run.out)
	}
}

func TestDemoInTerminal(t *testing.T) {
	screen := &screenBuffer{}
	run := runDemo(t, screen, "", "--for", "2s", "--pods", "20", "--faults", "--listen", "127.0.0.1:0")
	if run.code != exitOK {
		t.Errorf("exit code %d: %s", run.code, run.errOut)
	}
	for _, want := range []string{"RESOURCE", "EVENTS/S", "injected fault", "Ended after"} {
		if !strings.Contains(screen.String(), want) {
			t.Errorf("the terminal does not show %q", want)
		}
	}
}

func TestDemoBadInput(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	mine := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(mine, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	small := []string{"--pods", "2", "--for", "1s", "--listen", "127.0.0.1:0"}
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--pods", "0"}, exitUsage, "--pods is from 1 to 100000, not 0"},
		{[]string{"--crs", "-1"}, exitUsage, "--crs is from 0"},
		{[]string{"--rate", "-3"}, exitUsage, "--rate is 0 or more"},
		{[]string{"--rate", "NaN"}, exitUsage, "--rate is 0 or more"},
		{[]string{"--for", "-1s"}, exitUsage, "--for is a time such as 30s"},
		{[]string{"--interval", "0s"}, exitUsage, "--interval is a time"},
		{[]string{"--listen", "0.0.0.0:80"}, exitUsage, "--listen: the demonstration is for this machine only"},
		{[]string{"--listen", "nowhere"}, exitUsage, "--listen is host:port"},
		{[]string{"--listen", "127.0.0.1:99999"}, exitUsage, `--listen: there is no port "99999"`},
		{[]string{"--api-listen", "127.0.0.1:99999"}, exitUsage, `--api-listen: there is no port "99999"`},
		{[]string{"--api-listen", ":0"}, exitUsage, "--api-listen: the demonstration is for this machine only"},
		{[]string{"pods"}, exitUsage, "pods"},
		{append(small, "--listen", taken.Addr().String()), exitFailed, "is taken by another program"},
		{append(small, "--api-listen", taken.Addr().String()), exitFailed, "--api-listen: the port is taken by another program"},
		{append(small, "--kubeconfig-out", mine), exitFailed, "is there already; remove it, or name another file"},
		{append(small, "--kubeconfig-out", filepath.Join(mine, "below")), exitFailed, "the kubeconfig cannot be written"},
	} {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			run := runDemo(t, nil, "", test.args...)
			if run.code != test.code || !strings.Contains(run.errOut, test.want) || strings.Count(run.errOut, "\n") != 1 {
				t.Errorf("exit code %d, want %d; says %q, want one line with %q", run.code, test.code, run.errOut, test.want)
			}
		})
	}
	if content, err := os.ReadFile(mine); err != nil || string(content) != "mine" {
		t.Errorf("the user's file is now %q, %v", content, err)
	}
}

// While a large cluster is built, the progress is shown.
func TestDemoShowsHowFarItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		build := func(v *buildView) {
			v.pods, v.begun = 1000, time.Now()
			for pods := 100; pods <= 1000; pods += 100 {
				time.Sleep(time.Second)
				v.step(pods)
			}
			v.done()
		}
		var lines strings.Builder
		build(&buildView{out: &lines})
		if got := lines.String(); strings.Count(got, "\n") != 5 || !strings.Contains(got, "putting up a cluster: 200 of 1,000 pods, 100/s, 8.0s left\n") {
			t.Errorf("without a terminal it says\n%s", got)
		}
		screen := termtest.New(100, 12).WithoutColour()
		view := &buildView{live: term.NewLive(screen)}
		build(view)
		if got := screen.String(); strings.TrimSpace(got) != "" {
			t.Errorf("what is left on the screen is %q", got)
		}
		view.lastPrinted = time.Time{}
		view.step(500)
		if got := screen.String(); !strings.Contains(got, "putting up a cluster: 500 of 1,000 pods") {
			t.Errorf("the screen shows %q", got)
		}
	})
}
