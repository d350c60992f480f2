package sqlite

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/testsize"
)

var orders = testsize.Flag("orders", 3, 1, "how many random orders TestStockTools tries with each tool")

const writerEnvironment = "TARN_TEST_WRITER"

// process is another program. It reads a command per line, and answers each with lines
// up to "done".
type process struct {
	t     testing.TB
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
	// after is sent behind each line, for a program that does not say by itself that it
	// is done.
	after string
}

func startProcess(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	cmd.Stderr = cmd.Stdout
	must(t, cmd.Start())
	return &process{t: t, cmd: cmd, in: in, lines: bufio.NewScanner(out)}
}

func (p *process) send(command string) (answer string) {
	p.t.Helper()
	fmt.Fprint(p.in, command+"\n"+p.after)
	var all []string
	for p.lines.Scan() {
		if p.lines.Text() == "done" {
			return strings.Join(all, " ")
		}
		all = append(all, p.lines.Text())
	}
	p.t.Fatalf("%q was not answered: %s", command, strings.Join(all, "\n"))
	return ""
}

// end closes the input and waits for the process; kill does not.
func (p *process) end() {
	p.t.Helper()
	must(p.t, p.in.Close())
	for p.lines.Scan() {
	}
	if err := p.cmd.Wait(); err != nil && p.after == "" { // sqlite3 exits with an error if a statement failed
		p.t.Errorf("it ended with %v", err)
	}
}

func (p *process) kill() {
	must(p.t, p.cmd.Process.Kill())
	for p.lines.Scan() {
	}
	_ = p.cmd.Wait() // it was killed
}

// TestStockWriter is the mirror of TestStockTools, in its own process: it continues the
// history from the state of the file.
func TestStockWriter(t *testing.T) {
	dir := os.Getenv(writerEnvironment)
	if dir == "" {
		t.Skip("it is started by TestStockTools")
	}
	db, err := Open(dir, Options{Logger: quiet})
	must(t, err)
	must(t, db.writer.Exec("PRAGMA wal_autocheckpoint=30"))
	s := openTabular(t, db, "things")
	loaded, err := s.load(t.Context())
	must(t, err)
	at, err := strconv.Atoi("0" + string(loaded.version))
	must(t, err)
	h := newHistory(1)
	for range at {
		h.step()
	}
	if len(loaded.items) != len(h.now) {
		t.Fatalf("at version %d there are %d objects, and there were %d", at, len(loaded.items), len(h.now))
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if lines.Text() == "step" {
			changes, v := h.step()
			must(t, s.Apply(changes, tarn.At(v)))
		}
		fmt.Printf("%d\ndone\n", h.at)
	}
	must(t, db.Close())
}

func startWriter(t testing.TB, dir string) *process {
	cmd := exec.Command(os.Args[0], "-test.run=^TestStockWriter$")
	// The race detector waits for a second at the end of a process.
	cmd.Env = append(os.Environ(), writerEnvironment+"="+dir, "GORACE=atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	return startProcess(t, cmd)
}

// asked is what all tools ask: the version, and what the view shows.
const asked = "SELECT (SELECT version FROM tarn_collections WHERE name='things'), count(*), coalesce(sum(n), 0), coalesce(sum(length(json)), 0) FROM things"

// stockTool is a SQLite program that is not ours.
type stockTool struct {
	name  string
	start func(t testing.TB, file string) *process
}

var stockTools = []stockTool{
	{"sqlite3", func(t testing.TB, file string) *process {
		name, err := exec.LookPath("sqlite3")
		if err != nil {
			t.Skip("NOT RUN: there is no program sqlite3 here; Debian has it in the package sqlite3")
		}
		p := startProcess(t, exec.Command(name, "-batch", "-separator", " ", file))
		p.after = ".print done\n"
		return p
	}},
	{"python3", func(t testing.TB, file string) *process {
		name := python()
		if name == "" {
			t.Skip("NOT RUN: there is no python3 with its module sqlite3 here")
		}
		const script = `
import sqlite3, sys
conn = sqlite3.connect(sys.argv[1], isolation_level=None)
for line in sys.stdin:
    try:
        for row in conn.execute(line):
            print(*row)
    except Exception as e:
        print("error", e)
    print("done", flush=True)
conn.close()
`
		return startProcess(t, exec.Command(name, "-c", script, file))
	}},
}

// python is a Python with its module sqlite3; empty if there is none.
var python = sync.OnceValue(func() string {
	name, err := exec.LookPath("python3")
	if err != nil || exec.Command(name, "-c", "import sqlite3").Run() != nil {
		return ""
	}
	return name
})

// toolSteps runs steps on a directory that a mirror and another tool have open.
type toolSteps struct {
	t      testing.TB
	dir    string
	tool   stockTool
	writer *process
	reader *process
	last   int
	h      map[int]string
}

func newToolSteps(t testing.TB, tool stockTool) *toolSteps {
	o := &toolSteps{t: t, dir: directory(t), tool: tool, h: map[int]string{0: "0 0 0"}}
	t.Cleanup(func() {
		for _, p := range []*process{o.writer, o.reader} {
			if p != nil {
				p.kill()
			}
		}
	})
	return o
}

// do takes a step, if it is possible now.
func (o *toolSteps) do(step string) {
	o.t.Helper()
	switch step {
	case "start":
		if o.writer == nil {
			o.writer = startWriter(o.t, o.dir)
			if got := o.writer.send("look"); got != strconv.Itoa(o.last) {
				o.t.Errorf("the mirror comes up at %q, and was at %d", got, o.last)
			}
		}
	case "write":
		if o.writer != nil {
			got, err := strconv.Atoi(o.writer.send("step"))
			must(o.t, err)
			o.last = got
		}
	case "stop":
		if o.writer != nil {
			o.writer.end()
			o.writer = nil
		}
	case "kill":
		if o.writer != nil {
			o.writer.kill()
			o.writer = nil
		}
	case "open":
		if _, err := os.Stat(filepath.Join(o.dir, fileName)); err == nil && o.reader == nil {
			o.reader = o.tool.start(o.t, filepath.Join(o.dir, fileName))
		}
	case "begin", "commit":
		if o.reader != nil {
			o.reader.send(strings.ToUpper(step) + ";") // may be one already, or none
		}
	case "read":
		if o.reader != nil {
			o.checkAnswer(o.tool.name, o.reader.send(asked+";"))
		}
	case "checkpoint":
		if o.reader != nil {
			o.reader.send("PRAGMA wal_checkpoint(TRUNCATE);")
		}
	case "tidy": // what people do with databases when nobody uses them
		if o.reader != nil && o.writer == nil {
			o.reader.send("COMMIT;")
			for _, sql := range []string{"VACUUM;", "ANALYZE;", "CREATE TABLE IF NOT EXISTS notes (x);", "PRAGMA journal_mode=DELETE;"} {
				if got := o.reader.send(sql); strings.Contains(got, "error") {
					o.t.Errorf("%s %s", sql, got)
				}
			}
		}
	case "close":
		if o.reader != nil {
			o.reader.end()
			o.reader = nil
		}
	case "kill tool":
		if o.reader != nil {
			o.reader.kill()
			o.reader = nil
		}
	case "ask":
		if o.last > 0 {
			r, err := Query(context.Background(), o.dir, asked, Limits{})
			if err != nil {
				o.t.Errorf("SQL says %v", err)
				return
			}
			o.checkAnswer("SQL", strings.TrimSpace(fmt.Sprintln(r.Rows[0]...)))
			v, err := OpenReader(o.dir, nil)
			if err != nil {
				o.t.Errorf("a view says %v", err)
				return
			}
			n := 0
			held, err := v.Walk(context.Background(), "things", func(e Entry) error {
				n++
				_, err := e.Bytes()
				return err
			})
			if err != nil || held.Objects != n || held.Version != tarn.Version(strconv.Itoa(o.last)) {
				o.t.Errorf("a view shows %d objects and says %+v, %v", n, held, err)
			}
			must(o.t, v.Close())
		}
	}
	if found := reports(o.t, o.dir); len(found) > 0 {
		text, _ := os.ReadFile(found[0])
		o.t.Fatalf("after %q the file is taken for damaged: %s", step, text)
	}
}

// checkAnswer compares an answer with the states that the file had.
func (o *toolSteps) checkAnswer(who, answer string) {
	o.t.Helper()
	fields := strings.Fields(answer)
	if len(fields) != 4 && !(len(fields) == 3 && o.last == 0) {
		o.t.Errorf("%s says %q", who, answer)
		return
	}
	if len(fields) == 3 {
		return // before the first version
	}
	at, err := strconv.Atoi(fields[0])
	if err != nil || at > o.last || who == "SQL" && at != o.last {
		o.t.Errorf("%s says that it is at version %s, and the mirror is at %d", who, fields[0], o.last)
		return
	}
	h := newHistory(1)
	for range at {
		h.step()
	}
	sum := 0
	for _, n := range h.now {
		sum += n
	}
	if fields[1] != strconv.Itoa(len(h.now)) || fields[2] != strconv.Itoa(sum) {
		o.t.Errorf("at version %d %s counts %s objects that come to %s; there were %d that come to %d", at, who, fields[1], fields[2], len(h.now), sum)
	}
}

// Any SQLite tool may read the file, in every order of open, write, kill, close and
// restart: all answers are right, and the mirror can continue with the file.
func TestStockTools(t *testing.T) {
	steps := []string{"start", "write", "write", "stop", "kill", "open", "begin", "read", "read", "commit", "checkpoint", "tidy", "close", "kill tool", "ask"}
	for _, tool := range stockTools {
		t.Run(tool.name, func(t *testing.T) {
			for name, toolSteps := range map[string]string{
				"a reader is open while the mirror ends":     "start write open begin read stop read commit close ask start write ask",
				"the tool closes last after a kill":          "start write write kill open read close ask start write ask stop ask",
				"the tool is killed after the mirror":        "start write open begin read kill kill+tool ask start write ask",
				"the tool is there before the mirror":        "start write stop open read start write read write kill read close start ask",
				"the tool checkpoints beside the mirror":     "start write open checkpoint read write checkpoint read kill close ask start ask",
				"the tool tidies up after the mirror":        "start write stop open tidy read close ask start write ask",
				"the tool tidies up after a kill":            "start write kill open tidy read close ask start write ask stop ask",
				"a reader sees one state while it is opened": "start write open begin read write write read stop start write read commit read close ask",
			} {
				t.Run(name, func(t *testing.T) {
					o := newToolSteps(t, tool)
					for _, step := range strings.Fields(toolSteps) {
						o.do(strings.ReplaceAll(step, "+", " "))
					}
				})
			}
			for seed := range uint64(orders()) {
				t.Run(fmt.Sprint("order ", seed), func(t *testing.T) {
					random := rand.New(rand.NewPCG(seed, 11))
					o := newToolSteps(t, tool)
					o.do("start")
					o.do("write")
					for range 30 {
						step := steps[random.IntN(len(steps))]
						o.do(step)
						if t.Failed() {
							t.Fatalf("after %q", step)
						}
					}
					o.do("kill")
					o.do("close")
					o.do("start")
					o.do("ask")
				})
			}
		})
	}
}
