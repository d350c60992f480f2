package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// rounds makes results of a heap and a peak figure, one round for each pair.
func rounds(figures ...float64) []Result {
	var results []Result
	for i := 0; i < len(figures); i += 2 {
		results = append(results, Result{
			{"heap per object", figures[i], Small}, {"peak RSS growth", figures[i+1], Bytes},
		})
	}
	return results
}

func example() *Race {
	return &Race{
		Name: "protobuf", Pods: 6752,
		Entries: []Entry{
			{Name: "client-go", Rounds: rounds(20_000, 200<<20, 22_000, 200<<20, 18_000, 300<<20)},
			{Name: "client-go again", Against: "client-go", Rounds: rounds(21_000, 100<<20)},
			{Name: "tarn kube", Against: "client-go", Rounds: rounds(5_000, 90<<20)},
			{Name: "tarn late", Against: "client-go"},
		},
		Targets: []Target{
			{"tarn kube", "client-go", "heap per object", 0.25},
			{"tarn kube", "client-go again", "heap per object", 0.2},
			{"tarn kube", "client-go", "peak RSS growth", 0.4},
			{"tarn kube", "nobody", "peak RSS growth", 0.4},
		},
	}
}

func TestRaceTable(t *testing.T) {
	var out bytes.Buffer
	example().Table(&out)
	want := `
### protobuf, 6,752 objects

| measure         | contender       | against         |    median | spread | ratio |  target |              |
| ---             | ---             | ---             |      ---: |   ---: |  ---: |    ---: |         ---: |
| heap per object | client-go       |                 |  20.00 KB |   20 % |       |         |              |
|                 | client-go again | client-go       |  21.00 KB |    0 % | 1.050 |         |              |
|                 | tarn kube       | client-go       |   5.00 KB |    0 % | 0.250 | ≤ 0.250 |           ok |
|                 | tarn kube       | client-go again |   5.00 KB |    0 % | 0.238 | ≤ 0.200 |       MISSED |
| peak RSS growth | client-go       |                 | 200.0 MiB |   50 % |       |         |              |
|                 | client-go again | client-go       | 100.0 MiB |    0 % | 0.500 |         |              |
|                 | tarn kube       | client-go       |  90.0 MiB |    0 % | 0.450 | ≤ 0.400 |       MISSED |
|                 | tarn kube       | nobody          |  90.0 MiB |    0 % |       | ≤ 0.400 | not measured |
`
	if got := out.String(); got != want {
		t.Errorf("table:%swant:%s", got, want)
	}
	out.Reset()
	Verdict(&out, []*Race{example()})
	if got := out.String(); !strings.Contains(got, "1 of 4 targets reached") || strings.Count(got, "missed:") != 3 {
		t.Errorf("verdict:\n%s\nwant one of four reached and three named", got)
	}
	out.Reset()
	Verdict(&out, []*Race{{Name: "none"}})
	if out.Len() > 0 {
		t.Errorf("without targets the verdict is %q", out.String())
	}
}

// Rounds are compared with themselves: a machine that is slow in one of them is
// slow for all, and of two runs of the same program neither counts more.
func TestRatioOfRounds(t *testing.T) {
	r := &Race{Entries: []Entry{
		{Name: "client-go", Rounds: rounds(90, 1, 300, 1, 100, 1)},
		{Name: "client-go again", Against: "client-go", Again: true, Rounds: rounds(110, 1, 500, 1, 120, 1)},
		{Name: "tarn kube", Against: "client-go", Rounds: rounds(20, 1, 100, 1, 33, 1)},
		{Name: "tarn failed once", Against: "client-go", Rounds: rounds(22, 1, 33, 1)},
	}}
	for entry, want := range map[string]float64{
		"client-go again":  1.222, // of 110/90, 500/300 and 120/100
		"tarn kube":        0.25,  // of 20/100, 100/400 and 33/110
		"tarn failed once": 0.25,  // 27.5/110
	} {
		c, ok := r.compare("heap per object", entry, "client-go")
		if !ok || math.Abs(c.Ratio-want) > 0.001 {
			t.Errorf("%s: the ratio is %.3f, want %.3f", entry, c.Ratio, want)
		}
	}
}

// A target without an entry to compare with is about the figure itself, and may
// ask for nothing at all.
func TestAbsoluteTargets(t *testing.T) {
	r := &Race{
		Name: "store", Pods: 10,
		Entries: []Entry{
			{Name: "client-go", Rounds: []Result{{{"slowest Get", 0.5, Seconds}, {"garbage", 16, Single}}}},
			{Name: "tarn", Against: "client-go", Rounds: []Result{{{"slowest Get", 0.006, Seconds}, {"garbage", 0, Single}}}},
		},
		Targets: []Target{
			{"tarn", "", "slowest Get", 0.005},
			{"tarn", "", "garbage", 0.5},
			{"tarn", "client-go", "garbage", 0.5},
		},
	}
	var out bytes.Buffer
	r.Table(&out)
	Verdict(&out, []*Race{r})
	want := `
### store, 10 objects

| measure     | contender | against   | median | spread | ratio |   target |              |
| ---         | ---       | ---       |   ---: |   ---: |  ---: |     ---: |         ---: |
| slowest Get | client-go |           | 0.50 s |    0 % |       |          |              |
|             | tarn      | client-go | 6.0 ms |    0 % | 0.012 |          |              |
|             | tarn      |           | 6.0 ms |    0 % |       | ≤ 5.0 ms |       MISSED |
| garbage     | client-go |           | 16.0 B |    0 % |       |          |              |
|             | tarn      | client-go |  0.0 B |    0 % |       |  ≤ 0.500 | not measured |
|             | tarn      |           |  0.0 B |    0 % |       |  ≤ 0.5 B |           ok |

1 of 3 targets reached.
- missed: store, slowest Get: tarn has 6.0 ms, should have at most 5.0 ms
- missed: store, garbage: tarn is 0.000 of client-go, should be at most 0.500
`
	if got := out.String(); got != want {
		t.Errorf("table:%swant:%s", got, want)
	}
}

// sizes are two races of one name: what the example needs for 1,000 objects, and
// somewhat more per object for ten times as many.
func sizes() []*Race {
	small, large := example(), example()
	small.Pods, large.Pods = 1_000, 10_000
	large.Entries[0].Rounds = rounds(21_000, 2_000<<20)
	large.Entries[2].Rounds = rounds(6_500, 900<<20)
	return []*Race{large, {Name: "other", Pods: 5}, small}
}

func TestGrowth(t *testing.T) {
	var out bytes.Buffer
	Growth(&out, sizes())
	want := `
### protobuf, from 1,000 to 10,000 objects

| per object | contender       |    1,000 |   10,000 | largest/smallest |       |
| ---        | ---             |     ---: |     ---: |             ---: |  ---: |
| heap       | client-go       | 20.00 KB | 21.00 KB |             1.05 |  flat |
|            | client-go again | 21.00 KB | 21.00 KB |             1.00 |  flat |
|            | tarn kube       |  5.00 KB |  6.50 KB |             1.30 | grows |
|            | tarn late       |        - |        - |                  |       |
`
	if got := out.String(); got != want {
		t.Errorf("table:%swant:%s", got, want)
	}
}

func TestPlots(t *testing.T) {
	files := Plots(sizes())
	if len(files) != 2 || files["heap-protobuf.svg"] == nil || files["memory-protobuf.svg"] == nil {
		t.Fatalf("%d plots, want those of the heap and of the memory, in one race", len(files))
	}
	for name, content := range files {
		counts := map[string]int{}
		for d := xml.NewDecoder(bytes.NewReader(content)); ; {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s is not well-formed: %v", name, err)
			}
			if start, ok := token.(xml.StartElement); ok {
				counts[start.Name.Local]++
			}
		}
		if counts["polyline"] != 3 || counts["circle"] != 6 {
			t.Errorf("%s: %d lines with %d points, want 3 with 6", name, counts["polyline"], counts["circle"])
		}
		for _, want := range []string{">tarn kube</text>", ">client-go again</text>", ">10,000</text>"} {
			if !strings.Contains(string(content), want) {
				t.Errorf("%s has no %q", name, want)
			}
		}
	}
}

func TestAxis(t *testing.T) {
	a := newAxis([]float64{1_000, 100_000})
	if p := a.at(10_000); p < 0.499 || p > 0.501 {
		t.Errorf("ten thousand stands at %v between one and a hundred thousand, want the middle", p)
	}
	if got := newAxis([]float64{3 << 20, 30 << 20}).ticks(1 << 20); !slices.Equal(got, []float64{5 << 20, 10 << 20, 20 << 20}) {
		t.Errorf("ticks %v, want 5, 10 and 20 MiB", got)
	}
	for _, values := range [][]float64{{7}, {1, 1e9}, {0.9e-5, 1.1e-5}} {
		a := newAxis(values)
		for _, of := range []float64{1, 1 << 20} {
			if n := len(a.ticks(of)); n > 12 {
				t.Errorf("%v: %d ticks of %v, too many to read", values, n, of)
			}
		}
		for _, v := range values {
			if p := a.at(v); p <= 0 || p >= 1 {
				t.Errorf("%v: %v stands at %v, outside of the axis", values, v, p)
			}
		}
	}
}

func TestSave(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "results")
	f := &File{Machine: ThisMachine(), Races: sizes()}
	if err := f.Save(folder); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(folder, "results.json"))
	if err != nil {
		t.Fatal(err)
	}
	var read File
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	if read.Machine != f.Machine || read.Machine.Cores < 1 || len(read.Races) != 3 || read.Races[0].Entries[0].Rounds[0][0].Value != 21_000 {
		t.Errorf("read back: %+v", read)
	}
	if _, err := os.Stat(filepath.Join(folder, "heap-protobuf.svg")); err != nil {
		t.Error(err)
	}
	if err := f.Save(filepath.Join(folder, "results.json")); err == nil {
		t.Error("a file was taken for a folder")
	}
}
