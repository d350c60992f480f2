package main

import (
	"time"

	"github.com/tarnproject/tarn/bench/report"
)

// A meter measures what happens between start and stop: wall time, CPU time,
// the heap's growth and its peak.
//
//   - Growth compares live objects: both ends are taken after the garbage has
//     been collected. The peak counts garbage too, because the process has to
//     have room for it.
//   - start and stop collect garbage outside of the measured time.
//   - What the scenario itself holds must be alive at both ends, else its going
//     shows as shrinkage.
type meter struct {
	result report.Result

	began time.Time
	cpu   time.Duration
	heap  uint64
	peak  *peak
}

func newMeter() *meter { return &meter{} }

func (m *meter) start() {
	m.heap = liveHeap()
	m.peak = watchPeak()
	m.cpu = report.CPUTime()
	m.began = time.Now()
}

// lap begins the wall time anew: what went before was waiting on purpose.
func (m *meter) lap() { m.began = time.Now() }

// stop takes the figures and returns the wall time.
func (m *meter) stop() time.Duration {
	wall := time.Since(m.began)
	cpu := report.CPUTime() - m.cpu
	peak := m.peak.stop()
	m.record("wall time", wall.Seconds(), report.Seconds)
	m.record("cpu time", cpu.Seconds(), report.Seconds)
	m.record("heap growth", float64(liveHeap())-float64(m.heap), report.Bytes)
	m.record("peak heap over start", float64(peak)-float64(m.heap), report.Bytes)
	return wall
}

// record adds a figure that the scenario itself has counted.
func (m *meter) record(name string, value float64, u report.Unit) {
	m.result = append(m.result, report.Measure{Name: name, Value: value, Unit: u})
}
