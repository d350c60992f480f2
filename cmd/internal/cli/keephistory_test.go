package cli

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tarnproject/tarn/cmd/internal/term/termtest"
	"github.com/tarnproject/tarn/sqlite"
)

func TestParseHistory(t *testing.T) {
	day := 24 * time.Hour
	for text, want := range map[string]sqlite.History{
		"":                        {},
		"24h":                     {Age: day},
		"20GB":                    {Bytes: 20e9},
		"24h,20GB":                {Age: day, Bytes: 20e9},
		"1.5GiB, 7d":              {Age: 7 * day, Bytes: 3 << 29},
		"1d12h,500Mi":             {Age: 36 * time.Hour, Bytes: 500 << 20},
		"7d,20gb,thin=24h/1m":     {Age: 7 * day, Bytes: 20e9, Thin: sqlite.Thinning{After: day, Every: time.Minute}},
		"24h,20GB,thin=24h/1m":    {Age: day, Bytes: 20e9, Thin: sqlite.Thinning{After: day, Every: time.Minute}},
		"thin=1d/10s,1073741824B": {Bytes: 1 << 30, Thin: sqlite.Thinning{After: day, Every: 10 * time.Second}},
	} {
		if got, err := parseHistory(text); err != nil || got != want {
			t.Errorf("%q is %+v, %v; want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"forever":            `"forever" is neither an age`,
		"20":                 `"20" is neither an age`,
		"24h,":               `"" is neither an age`,
		"20M":                `"20M" is neither an age`,
		"24h,48h":            `"48h" is given besides another`,
		"1GB,2GB":            `"2GB" is given besides another`,
		"10s":                "an age of 10s is too small",
		"0s":                 "too small",
		"-1h":                "too small",
		"100KB":              "100KB is too small: it bounds the whole file",
		"99999999999TB":      "neither an age",
		"300000d":            "neither an age",
		"thin=24h/1m":        "not for how long they are kept",
		"24h,thin=48h/1m":    "removed before they are old enough",
		"24h,thin=1m":        "such as thin=24h/1m",
		"24h,thin=1h/1ms":    "such as thin=24h/1m",
		"24h,thin=later/now": "such as thin=24h/1m",
	} {
		if _, err := parseHistory(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is answered by %v, want %q", text, err, want)
		}
	}
}

// A mirror with a history says since when it keeps it, in lines and in the view, also
// after a restart.
func TestMirrorSaysSinceWhenHistoryIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, pod("web-1", corev1.PodRunning))
		dir := filepath.Join(t.TempDir(), "replica")
		began := time.Now()
		got := r.during(func(*lockedBuffer) {
			time.Sleep(5 * time.Second)
			r.put(pod("web-1", corev1.PodFailed))
			time.Sleep(20 * time.Second)
		}, "mirror", "pods", "--to", dir, "--history", "24h,1GB")
		since := "history since " + began.Local().Format("15:04:0")
		if !strings.Contains(got.out, since) || !strings.Contains(got.out, ", 2 states\n") {
			t.Errorf("the lines are\n%s", got)
		}
		r.screen = termtest.New(100, 12)
		r.during(func(*lockedBuffer) {
			time.Sleep(8 * time.Second)
			if text := r.screen.Styled(); !strings.Contains(text, since) {
				t.Errorf("the view is\n%s", text)
			}
		}, "mirror", "pods", "--to", dir, "--history", "24h,1GB")
	})
}

// serve says so too, when the first state is on disk.
func TestServeSaysSinceWhenHistoryIsKept(t *testing.T) {
	r := newRig(t, pod("web-1", corev1.PodRunning))
	said := regexp.MustCompile(`^Keeping (history since \d\d:\d\d:\d\d, 1 state)\.$`)
	ended := servingUntil(t.Context(), r.app(nil, &lockedBuffer{}), said, func(string) {}, "pods", "--to", filepath.Join(t.TempDir(), "replica"), "--history", "24h")
	if ended.code != exitOK || !strings.Contains(ended.out, "Keeping history since ") {
		t.Errorf("it says\n%s", ended)
	}
}
