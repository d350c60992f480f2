package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/changelog"
)

const rewriteCrashEnvironment = "TARN_TEST_REWRITE_CRASH"

// TestRewriteKill kills processes while they rewrite the past without a field, at random
// moments. The last one finishes: all states are there, nothing of the field is left in
// any file, and content and log agree.
func TestRewriteKill(t *testing.T) {
	if dir := os.Getenv(rewriteCrashEnvironment); dir != "" {
		rewriteUntilKilled(t, dir)
		return
	}
	r := newPastRig(t, keepAll)
	texts, versions := map[tarn.Key]string{}, map[tarn.Key]int{}
	for i := range 600 {
		key := tarn.Key(fmt.Sprint("ns/", i%40))
		text := fmt.Sprintf("text %d|hidden%d", i, i)
		if i%40 < 5 && i%120 < 40 {
			text = ""
		}
		r.set(key, text)
		if texts[key], versions[key] = strings.Split(text, "|")[0], r.version; text == "" {
			delete(texts, key)
		}
	}
	before := r.states()
	must(t, r.db.Close())
	if hiddenIn(t, r.dir) == 0 {
		t.Fatal("the file has nothing of the field before it is switched off")
	}
	original, killed, refused, longest := copyOf(t, r.dir), 0, 0, 200*time.Millisecond
	for i := 0; i < crashes() || refused == 0 && i < 10*crashes(); i++ {
		cmd := exec.Command(os.Args[0], "-test.run=^TestRewriteKill$")
		cmd.Env = append(os.Environ(), rewriteCrashEnvironment+"="+r.dir)
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		said := make([]byte, 2)
		_, err = out.Read(said[:1])
		must(t, err)
		time.Sleep(rand.N(longest)) // real time: another process runs
		_ = cmd.Process.Kill()      // it may have ended
		if n, _ := out.Read(said[1:]); n == 0 {
			killed++
			_ = cmd.Wait() // it was killed
		} else {
			// It has rewritten everything, and may be killed while it closes the directory.
			if err := cmd.Wait(); cmd.ProcessState.ExitCode() > 0 {
				t.Fatal(err)
			}
			r.dir, longest = copyOf(t, original), longest/2+time.Millisecond
		}
		checkSound(t, r.dir, nil)
		refused += r.shownWhileRewriting()
	}
	if refused == 0 {
		t.Error("a past that was rewritten in part was never there")
	}
	if killed == 0 {
		t.Error("no child was killed while it rewrote")
	}
	db := open(t, r.dir, Options{History: keepAll})
	sink, err := NewSink(db, Collection{Name: "objects", Identity: "short"}, shortened{})
	must(t, err)
	r.db, r.sink = db, sink
	r.relist(texts, versions)
	must(t, inTurn(db.log.empty(db.writer), db.sweepFile))
	if n := hiddenIn(t, r.dir); n > 0 {
		t.Errorf("the field is %d times in the files", n)
	}
	after := r.states()
	for i, line := range before {
		line, _, _ = strings.Cut(line, "|")
		if i >= len(after) || after[i] != line || len(after) != len(before) {
			t.Fatalf("%d states of %d: instead of %s there is %s", len(after), len(before), line, after[min(i, len(after)-1)])
		}
	}
	bounds, err := sink.Log().Bounds(t.Context())
	must(t, err)
	for e, err := range sink.Log().AsOf(t.Context(), changelog.Place{Seq: bounds.Last}) {
		must(t, err)
		o, err := logged{}.Decode(e.Object)
		must(t, err)
		if o.Text != texts[e.Key] {
			t.Errorf("%s is %q in the log, and %q in the content", e.Key, o.Text, texts[e.Key])
		}
		delete(texts, e.Key)
	}
	if len(texts) > 0 {
		t.Errorf("the log lacks %v", texts)
	}
	checkSound(t, r.dir, nil)
	t.Logf("%d of %d children were killed while they rewrote", killed, crashes())
}

// If a process ends after the content was dropped and the past was kept, the next one knows
// from the past since when it may have missed states.
func TestGapAfterDroppedContent(t *testing.T) {
	r := newPastRig(t, keepAll)
	last := r.set("ns/a", "first text|hidden")
	r.shorten("short")
	for _, missed := range []bool{false, true} {
		must(t, r.db.Close())
		r.db = open(t, r.dir, Options{History: keepAll})
		r.sink = nil
		sink, err := NewSink(r.db, Collection{Name: "objects", Identity: "short"}, shortened{})
		must(t, err)
		if r.sink = sink; missed {
			r.shorten("shorter")
			must(t, r.db.Close())
			r.db = open(t, r.dir, Options{History: keepAll})
			r.sink, err = NewSink(r.db, Collection{Name: "objects", Identity: "shorter"}, shortened{})
			must(t, err)
			r.now, r.version = r.now.Add(time.Hour), r.version+1
		}
		r.relist(map[tarn.Key]string{"ns/a": "first text"}, map[tarn.Key]int{"ns/a": r.version})
		got, want := r.query(Moment{}, "SELECT from_version, to_version, cause, since FROM tarn_gaps"), "[]"
		if missed {
			want = fmt.Sprintf("[[1 2 reconciled %v]]", float64(last.UnixMilli())/1000)
		}
		if got != want {
			t.Errorf("states were missed: %v; the gaps are %s, want %s", missed, got, want)
		}
	}
}

// rewriteUntilKilled continues the rewriting, in many transactions, and says when it begins
// and when it has ended.
func rewriteUntilKilled(t *testing.T, dir string) {
	rewrittenAtOnce = 1
	db, err := Open(dir, Options{Logger: quiet, History: keepAll})
	must(t, err)
	must(t, db.writer.Exec("PRAGMA wal_autocheckpoint=50"))
	fmt.Print("!")
	_, err = NewSink(db, Collection{Name: "objects", Identity: "short"}, shortened{})
	must(t, err)
	fmt.Print(".")
	must(t, db.Close())
}

// shownWhileRewriting reads the past after a child was killed: all states have the field,
// or none, or nothing is shown, which it counts.
func (r *pastRig) shownWhileRewriting() (refused int) {
	r.Helper()
	view, err := OpenReader(r.dir, nil)
	must(r, err)
	defer view.Close()
	with, all := 0, 0
	for e, err := range view.Log("objects").After(r.Context(), 1) {
		if errors.Is(err, changelog.ErrAhead) {
			if got := r.query(Moment{}, "SELECT count(*) FROM objects_history"); !strings.Contains(got, "are being removed from its history") {
				r.Errorf("SQL shows a past that is rewritten in part: %s", got)
			}
			return 1
		}
		must(r, err)
		if all++; bytes.Contains(e.Object, []byte("hidden")) {
			with++
		}
	}
	if with != 0 && with != all {
		r.Errorf("%d of %d states have the field", with, all)
	}
	return 0
}

// states are all states of the past, as text.
func (r *pastRig) states() (lines []string) {
	r.Helper()
	for e, err := range r.sink.Log().After(r.Context(), 0) {
		must(r, err)
		if e.Gap != nil {
			lines = append(lines, "gap "+e.Gap.String())
			continue
		}
		o, err := logged{}.Decode(e.Object)
		must(r, err)
		lines = append(lines, fmt.Sprint(e.Seq, e.Key, " ", e.UID, " ", e.Version, e.Operation, e.Heard.UnixMilli(), " ", o.Text))
	}
	return lines
}

// hiddenIn counts what is left of the field in the files of a directory.
func hiddenIn(t *testing.T, dir string) (n int) {
	for _, raw := range filesOf(t, dir) {
		n += bytes.Count(raw, []byte("hidden"))
	}
	return n
}
