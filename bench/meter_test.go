package main

import (
	"runtime"
	"testing"

	"github.com/tarnproject/tarn/bench/report"
)

const mebibyte = 1 << 20

func TestMeterSeparatesGrowthFromPeak(t *testing.T) {
	m := newMeter()
	m.start()
	kept := make([]byte, 8*mebibyte)
	passing := make([]byte, 32*mebibyte)
	runtime.KeepAlive(passing)
	m.stop()
	runtime.KeepAlive(kept)

	got := map[string]float64{}
	for _, x := range m.result {
		got[x.Name] = x.Value / mebibyte
	}
	if g := got["heap growth"]; g < 7.5 || g > 12 {
		t.Errorf("heap growth %.1f MiB, want about the 8 that were kept", g)
	}
	if p := got["peak heap over start"]; p < 39 {
		t.Errorf("peak %.1f MiB over the start, want at least the 40 that were there at once", p)
	}
}

func TestMeterCountsOwnWork(t *testing.T) {
	m := newMeter()
	m.start()
	before := report.CPUTime()
	for report.CPUTime()-before < 1e6 {
	}
	wall := m.stop()
	for _, x := range m.result {
		if x.Name == "cpu time" && x.Value < 0.001 || x.Name == "wall time" && x.Value != wall.Seconds() {
			t.Errorf("%s: %v s after a millisecond of work", x.Name, x.Value)
		}
	}
}
