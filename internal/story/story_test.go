package story

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const two = `Words about the file.

=== list: the first
with: watchlist resync=10s
took: 2s..3s
-- server --
list 5 ×2: a@3 b@5   # twice
watch error 429 after=20
watch: mod a@6, wait 1s, close
-- user --
before recheck doubted
10s stop
-- handler --
add a@3 (initial)

=== list: the second
-- server --
list hang
`

// A file comes back unchanged, and a section that is set is written.
func TestFilesAreWrittenAsTheyWereRead(t *testing.T) {
	f, err := parseFile("two.txtar", two)
	if err != nil {
		t.Fatal(err)
	}
	if got := f.format(); got != two {
		t.Errorf("it comes back as\n%s", got)
	}
	s := f.Stories[0]
	if s.Name != "list: the first" || !s.With.Has("watchlist") || s.With.Duration("resync", 0) != 10*time.Second ||
		s.Took != (Span{2 * time.Second, 3 * time.Second}) || len(s.User) != 2 || s.User[0].At != Before {
		t.Errorf("read as %+v", s)
	}
	s.Set("handler", "")
	s.Set("store", "a@3\n")
	if got, want := f.format(), strings.Replace(two, "-- handler --\nadd a@3 (initial)\n", "-- store --\na@3\n", 1); got != want {
		t.Errorf("after a change it is\n%s", got)
	}
}

// A file without titles is one story, named after the file.
func TestFileOfOneStory(t *testing.T) {
	f, err := parseFile("some/plain.txtar", "Words.\n-- server --\nlist 5: a@3\n")
	if err != nil || len(f.Stories) != 1 || f.Stories[0].Name != "plain" {
		t.Errorf("read as %+v, %v", f, err)
	}
}

// What cannot be understood is an error, so that a slip of the pen does not make a
// story weaker.
func TestWhatIsNoStory(t *testing.T) {
	for _, text := range []string{
		"-- server --\nlisten 5: a@3\n",
		"-- server --\nlist ×many 5: a@3\n",
		"-- user --\nsoon stop\n",
		"-- user --\n10s\n",
		"took: 5s\n",
		"took: soon..\n",
		"-- store --\na@3\n-- store --\na@4\n",
		"=== a\n=== a\n",
		"=== \n",
	} {
		if _, err := parseFile("bad.txtar", text); err == nil {
			t.Errorf("read without an error: %q", text)
		}
	}
	if _, err := ReadFolder(t.TempDir()); err == nil {
		t.Error("a folder without stories is no error")
	}
}

func TestFilesOnDisk(t *testing.T) {
	folder := t.TempDir()
	path := folder + "/two.txtar"
	if err := os.WriteFile(path, []byte(two), 0o644); err != nil {
		t.Fatal(err)
	}
	files, err := ReadFolder(folder)
	if err != nil || len(files) != 1 || files[0].Write() != nil {
		t.Fatal(files, err)
	}
	if data, _ := os.ReadFile(path); string(data) != two {
		t.Errorf("written as\n%s", data)
	}
}

// The server gives its answers in order, records requests with their waits, and
// knows when it has given all.
func TestServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script, err := ParseScript("list error 429 after=20\nlist delay=1s 5 continue=t ×2: a@3 b@5\nwatch:\n")
		if err != nil {
			t.Fatal(err)
		}
		s := NewServer(script)
		if words, ok := s.Next("list", "rv=0").Fault(); !ok || strings.Join(words, " ") != "429 after=20" {
			t.Errorf("the first answer has the error %q", words)
		}
		s.End()
		for range 2 {
			time.Sleep(time.Second)
			a := s.Next("list", "rv=0")
			start := time.Now()
			if err := a.Wait(t.Context()); err != nil || time.Since(start) != time.Second {
				t.Errorf("the answer took %v, %v", time.Since(start), err)
			}
			if a.Version() != "5" || a.Value("continue") != "t" || len(a.Parts) != 2 {
				t.Errorf("the answer is %+v", a)
			}
			s.Mention(a.Version())
			s.End()
		}
		select {
		case <-s.Over():
			t.Error("it is over before the last answer")
		default:
		}
		s.Next("watch", "rv=5")
		<-s.Over()
		if v := s.Next("probe", "").Version(); v != "5" {
			t.Errorf("a probe is told %q", v)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := s.Next("list", "rv=5").Wait(ctx); err == nil {
			t.Error("a list that is not in the script is answered")
		}
		if got, want := s.Requests(), "list rv=0\nlist rv=0 +0.8s ×2\nwatch rv=5\nprobe\nlist rv=5\n"; got != want {
			t.Errorf("requests:\n%swant:\n%s", got, want)
		}
	})
}

// A watch plays its events at their times, and a caller that stops waiting loses nothing.
func TestPlayer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		for _, text := range []string{": add a@6, wait 10s, error 410", ": wait timeout, close", ": idle 9", ": stay 7"} {
			a, err := ParseAnswer(text, false)
			if err != nil {
				t.Fatal(err)
			}
			p := NewServer(&Script{}).Play(a, 150*time.Second)
			start := time.Now()
			for range 3 {
				short, cancel := context.WithTimeout(t.Context(), time.Second)
				words, err := p.Next(short.Done())
				cancel()
				if err == ErrStopped {
					long, cancel := context.WithTimeout(t.Context(), time.Hour)
					words, err = p.Next(long.Done())
					cancel()
				}
				line := time.Since(start).String() + " " + strings.Join(words, " ")
				if err != nil {
					line += err.Error()
				}
				got = append(got, line)
				if err == io.EOF {
					break
				}
			}
		}
		want := []string{
			"0s add a@6", "10s error 410", "1h0m11s " + ErrStopped.Error(),
			"2m30s EOF",
			"1m0s bookmark 9", "2m0s bookmark 9", "2m30s EOF",
			"1m0s bookmark 7", "2m0s bookmark 7", "3m0s bookmark 7",
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("played\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

func TestTimes(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "", 50 * time.Millisecond: "+50ms", 900 * time.Millisecond: "+0.8s", 45 * time.Second: "+25.6s",
	} {
		if got := ShowWait(d); got != want {
			t.Errorf("a wait of %s is %q, want %q", d, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		3 * time.Second: "3s", 7 * time.Minute: "5m..10m", 10 * time.Minute: "10m0s", 30 * time.Minute: "20m..40m",
	} {
		if got := ShowTimeout(d); got != want {
			t.Errorf("a timeout of %s is %q, want %q", d, got, want)
		}
	}
	least, most := Span{Least: 2}, Span{Most: 2}
	if !least.Includes(3) || least.Includes(1) || most.Includes(3) || !most.Includes(1) || !(Span{}).Includes(5) {
		t.Error("a span includes what it should not, or the other way round")
	}
}
