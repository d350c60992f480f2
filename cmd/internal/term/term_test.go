package term_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tarnproject/tarn/cmd/internal/term"
	"github.com/tarnproject/tarn/cmd/internal/term/termtest"
)

func TestWidth(t *testing.T) {
	for text, want := range map[string]int{
		"":         0,
		"pods":     4,
		"größe":    5,
		"日本":       4,
		"e\u0301x": 2, // an accent of its own
		"a\x1bb":   2,
	} {
		if got := term.Width(text); got != want {
			t.Errorf("%q is %d columns wide, want %d", text, got, want)
		}
	}
}

func TestCut(t *testing.T) {
	for _, test := range []struct {
		text    string
		columns int
		want    string
	}{
		{"kube-system", 20, "kube-system"},
		{"kube-system", 11, "kube-system"},
		{"kube-system", 5, "kube…"},
		{"日本語", 4, "日…"},
		{"x", 0, ""},
		{"xy", 1, "…"},
	} {
		if got := term.Cut(test.text, test.columns); got != test.want || term.Width(got) > test.columns {
			t.Errorf("%q cut to %d is %q, want %q", test.text, test.columns, got, test.want)
		}
	}
}

func TestCleanTakesOutWhatMovesTheCursor(t *testing.T) {
	for text, want := range map[string]string{
		"plain":                    "plain",
		"two\nlines\tand a tab":    "two lines and a tab",
		"\x1b[2Jgone":              "\uFFFD[2Jgone",
		"\u009b31mred":             "\uFFFD31mred",
		"\x9b31mred":               "\uFFFD31mred", // the same for a terminal of eight bits
		"safe\u202Etxt.exe":        "safe\uFFFDtxt.exe",
		"ring\a back\b delete\x7f": "ring\uFFFD back\uFFFD delete\uFFFD",
	} {
		if got := term.Clean(text); got != want {
			t.Errorf("%q is cleaned to %q, want %q", text, got, want)
		}
	}
}

func TestBar(t *testing.T) {
	for part, want := range map[float64]string{
		-1: "        ", 0: "        ", 0.5: "████    ", 0.56: "████▍   ", 1: "████████", 7: "████████",
	} {
		if got := term.Bar(8, part); got != want {
			t.Errorf("the bar at %v is %q, want %q", part, got, want)
		}
	}
}

func TestLineIsRenderedWhole(t *testing.T) {
	line := term.Line{{Text: "a "}, {Text: "b", Style: term.Red}}
	if got, want := line.Render(true), "a \x1b[31mb\x1b[0m"; got != want {
		t.Errorf("in colour: %q, want %q", got, want)
	}
	if got, want := line.Render(false), "a b"; got != want {
		t.Errorf("without: %q, want %q", got, want)
	}
}

// A step of a drawing's story: what is done, and what the screen shows then.
func TestLiveDrawsInPlace(t *testing.T) {
	screen := termtest.New(20, 5)
	screen.Write([]byte("$ tarn watch pods\n"))
	live := term.NewLive(screen)
	for _, step := range []struct {
		what string
		do   func() error
		want string
	}{
		{"the first drawing", func() error { return live.Draw(lines("one", "two")) },
			"$ tarn watch pods\none\ntwo\n"},
		{"over it, longer and shorter", func() error { return live.Draw(lines("ONE and more", "2", "3")) },
			"$ tarn watch pods\nONE and more\n2\n3\n"},
		{"fewer lines leave nothing behind", func() error { return live.Draw(lines("1")) },
			"$ tarn watch pods\n1\n"},
		{"a log line comes above", func() error { _, err := live.Write([]byte("level=WARN msg=lost\n")); return err },
			"$ tarn watch pods\nlevel=WARN msg=lost\n1\n"},
		{"too long is cut, and does not wrap", func() error { return live.Draw(lines("a line that is longer than twenty", "b")) },
			"$ tarn watch pods\nlevel=WARN msg=lost\na line that is long…\nb\n"},
		{"too many lines are left out", func() error { return live.Draw(lines("1", "2", "3", "4", "5", "6")) },
			"$ tarn watch pods\nlevel=WARN msg=lost\n1\n2\n3\n4\n"},
		{"a narrower window has broken the lines", func() error {
			if err := live.Draw(lines("12345678901234567890", "b")); err != nil {
				return err
			}
			screen.Resize(15, 8)
			return live.Draw(lines("again", "b"))
		},
			"$ tarn watch po\nds\nlevel=WARN msg=\nlost\nagain\nb\n"},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		if diff := cmp.Diff(step.want, screen.String()); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", step.what, diff)
		}
	}
}

func TestLiveColours(t *testing.T) {
	line := []term.Line{{{Text: "web "}, {Text: "Running", Style: term.Reversed}, {Text: " now", Style: term.Red}}}
	screen := termtest.New(13, 5)
	if err := term.NewLive(screen).Draw(line); err != nil {
		t.Fatal(err)
	}
	if got, want := screen.Styled(), "web {7:Running}{31: …}\n"; got != want {
		t.Errorf("in colour: %q, want %q", got, want)
	}
	screen = termtest.New(13, 5).WithoutColour()
	if err := term.NewLive(screen).Draw(line); err != nil {
		t.Fatal(err)
	}
	if got, want := screen.Styled(), "web Running …\n"; got != want {
		t.Errorf("without: %q, want %q", got, want)
	}
}

// Whatever objects are called, they cannot take over the terminal: the screen
// panics on codes that the package does not write itself.
func TestLiveIsSafeAgainstItsText(t *testing.T) {
	screen := termtest.New(40, 5)
	if err := term.NewLive(screen).Draw(lines("\x1b[2J\x1b]0;title\a", "x\x1b[5A")); err != nil {
		t.Fatal(err)
	}
	if got := screen.String(); strings.Count(got, "\n") != 2 {
		t.Errorf("two lines became %q", got)
	}
}

func TestTooSmall(t *testing.T) {
	if err := term.TooSmall(termtest.New(80, 24), 40, 5); err != nil {
		t.Errorf("80x24: %v", err)
	}
	if err := term.TooSmall(termtest.New(0, 0), 40, 5); err != nil {
		t.Errorf("a terminal that does not tell is taken for the usual one: %v", err)
	}
	want := "the terminal is too small: it has 39 columns and 24 lines, and 40 and 5 are needed; enlarge it, or pipe the output to cat for plain lines"
	if err := term.TooSmall(termtest.New(39, 24), 40, 5); err == nil || err.Error() != want {
		t.Errorf("39x24: %v, want %s", err, want)
	}
}

func TestOfRecognizesTerminals(t *testing.T) {
	if _, ok := term.Of(&bytes.Buffer{}); ok {
		t.Error("a buffer is taken for a terminal")
	}
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, ok := term.Of(file); ok {
		t.Error("a file is taken for a terminal")
	}
}

func lines(texts ...string) []term.Line {
	var all []term.Line
	for _, text := range texts {
		all = append(all, term.Text(text))
	}
	return all
}
