package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tarnproject/tarn/bench/contender"
	"github.com/tarnproject/tarn/bench/podset"
	"github.com/tarnproject/tarn/bench/replay"
)

// What a race or a target names must be there.
func TestRacesAreWhole(t *testing.T) {
	measures := []string{heapPerObject, objectsPerObject, peakMemory, syncTime, cpuPerObject, cpuPerUpdate, gcTime, diskSize}
	for _, r := range races {
		for _, e := range r.entries {
			if _, ok := contender.ByName(e.contender); !ok {
				t.Errorf("%s: there is no contender %q", r.name, e.contender)
			}
			if _, ok := r.entry(e.against); !ok && e.against != "" {
				t.Errorf("%s: %s is compared with %q, which does not run", r.name, e.name, e.against)
			}
		}
		for _, target := range r.targets {
			_, ok := r.entry(target.Entry)
			_, against := r.entry(target.Against)
			if !ok || !against && target.Against != "" || !slices.Contains(measures, target.Measure) || target.AtMost <= 0 {
				t.Errorf("%s: target %+v names what is not measured", r.name, target)
			}
		}
	}
}

// A small race from the command line to the files, with children and a server of
// their own.
func TestARaceFromEndToEnd(t *testing.T) {
	folder := t.TempDir()
	out := new(bytes.Buffer)
	args := []string{
		"-quick", "-run", "^protobuf$", "-only", "^client-go$|^tarn kube$", "-count", "1", "-n", "20,40", "-updates", "30",
		"-data", filepath.Join(folder, "none"), "-out", filepath.Join(folder, "results"), "-profiles", folder,
	}
	if err := run(t.Context(), args, out, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"### protobuf, 20 objects", "### protobuf, 40 objects", "from 20 to 40 objects",
		"| heap per object ", "| heap objects per object ", "| sync time ", "| CPU per object ", "| GC time ",
		"| CPU per update ", "| updated heap per object ", "| Get ", "| List / object ",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output:\n%s\nwant %q in it", out, want)
		}
	}
	for _, name := range []string{"results/results.json", "results/time-protobuf.svg", "tarn-kube.sync.cpu.pprof", "client-go.heap.pprof"} {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			t.Error(err)
		}
	}
}

func TestAServerThatCannotServeSaysWhy(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad")
	if err := os.WriteFile(bad, []byte("no pods"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err := startServer(t.Context(), replay.Config{Data: bad, Kind: podset.ReplicaSets, Formats: []replay.Format{replay.JSON}})
	if err == nil || !strings.Contains(err.Error(), bad) {
		t.Errorf("error %v, want it to name the file", err)
	}
}

func TestQuickGivesWayToOtherFlags(t *testing.T) {
	o, err := parse([]string{"-quick", "-n", "7,0"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if o.count != 2 || !slices.Equal(o.sizes, []int{7, 0}) {
		t.Errorf("options %+v", o)
	}
	if o, err = parse(nil, io.Discard); err != nil || o.count != 3 || len(o.sizes) != 3 || o.out != "" || o.docs != "" || len(o.scenarios) != len(scenarios) {
		t.Errorf("without flags: %+v, %v", o, err)
	}
}

// Without -run, what the documents do not show is left out.
func TestExtraRacesAreNamed(t *testing.T) {
	named := func(args ...string) (names []string) {
		o, err := parse(args, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range o.races {
			names = append(names, r.name)
		}
		for _, held := range o.trials {
			names = append(names, held.name)
		}
		return names
	}
	if got := named(); slices.Contains(got, "metadata") || slices.Contains(got, "fieldpath") || !slices.Contains(got, "protobuf") {
		t.Errorf("by default: %q", got)
	}
	if got := named("-run", "metadata|fieldpath"); !slices.Equal(got, []string{"metadata", "fieldpath"}) {
		t.Errorf("by name: %q", got)
	}
}

func TestSizesOfARace(t *testing.T) {
	for _, test := range []struct {
		race         race
		chosen, want []int
	}{
		{race{scaled: true}, []int{0, 1000, 30000}, []int{0, 1000, 30000}},
		{race{}, []int{0, 1000, 30000}, []int{0}},
		{race{}, []int{1000, 30000}, nil},
		{race{}, []int{1000}, []int{1000}},
		{race{largestOnly: true}, []int{0, 1000, 30000}, []int{30000}},
		{race{largestOnly: true}, []int{0}, []int{0}},
	} {
		if got := test.race.sizes(test.chosen); !slices.Equal(got, test.want) {
			t.Errorf("%+v of %v: %v, want %v", test.race, test.chosen, got, test.want)
		}
	}
}

func TestPeakRSSSeesWhatWasThere(t *testing.T) {
	before := resetPeakRSS()
	if before == 0 {
		t.Skip("this system does not tell")
	}
	passing := make([]byte, 64*mebibyte)
	for i := 0; i < len(passing); i += 4096 {
		passing[i] = 1
	}
	if grown := int64(peakRSS()) - int64(before); grown < 60*mebibyte {
		t.Errorf("the peak grew by %d bytes with 64 MiB in use", grown)
	}
}
