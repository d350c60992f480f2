package web

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
	"github.com/tarnproject/tarn/internal/render"
)

// timeFormat is RFC 3339 to the millisecond, always in UTC.
const timeFormat = "2006-01-02T15:04:05.000Z07:00"

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(timeFormat)
}

// rounded rounds to three digits after the point: more would only cost bytes.
func rounded(x float64) float64 { return math.Round(x*1000) / 1000 }

// fine rounds to a hundredth of a millisecond.
func fine(d time.Duration) float64 { return math.Round(d.Seconds()*1e5) / 1e5 }

// overview is the state of all tables.
type overview struct {
	Name   string        `json:"name"`
	Time   string        `json:"time"`
	Tables []tableStatus `json:"tables"`
	// Problems counts the current problems.
	Problems int `json:"problems"`
	// SQL says that statements are accepted.
	SQL bool `json:"sql"`
	// Relay is set on the page of a relay, which has no tables.
	Relay *relayStatus `json:"relay,omitempty"`
}

// tableStatus is the state of one table.
type tableStatus struct {
	Name       string `json:"name"`
	Group      string `json:"group"`
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespaced bool   `json:"namespaced"`

	State       string       `json:"state"`
	Synced      bool         `json:"synced"`
	Fresh       bool         `json:"fresh"`
	Version     tarn.Version `json:"version"`
	LastContact string       `json:"lastContact,omitempty"`
	// Age is the seconds since LastContact.
	Age float64 `json:"age"`
	// FromDisk says that the content comes from an earlier process.
	FromDisk bool `json:"fromDisk,omitempty"`
	// Lag is the longest recent delay, in seconds, until a change was in the copy and
	// delivered to all subscribers.
	Lag float64 `json:"lag"`

	Objects         int     `json:"objects"`
	Received        int     `json:"received"`
	Expected        int     `json:"expected"`
	EventsPerSecond float64 `json:"eventsPerSecond"`
	BytesPerObject  int     `json:"bytesPerObject"`

	Error      string `json:"error,omitempty"`
	ErrorSince string `json:"errorSince,omitempty"`
	Failures   int    `json:"failures,omitempty"`
	Bad        int    `json:"bad"`

	// Relists counts whole reads by cause, the first one included.
	Relists map[string]int64 `json:"relists"`
	Watches int64            `json:"watches"`
	Events  int64            `json:"events"`
	Rewinds int64            `json:"rewinds"`

	// Clusters has the state of each cluster, if there are several.
	Clusters []clusterStatus `json:"clusters,omitempty"`

	// KeepsHistory says that past states are kept: see /api/history.
	KeepsHistory bool `json:"keepsHistory,omitempty"`

	History *history `json:"history,omitempty"`
}

// clusterStatus is the state of one cluster's part of a table.
type clusterStatus struct {
	Name    string       `json:"name"`
	Synced  bool         `json:"synced"`
	Fresh   bool         `json:"fresh"`
	Version tarn.Version `json:"version"`
	Age     float64      `json:"age"`
	Error   string       `json:"error,omitempty"`
}

// history is the state of a table over time, one number per sample, oldest first.
type history struct {
	// Times are in seconds since 1970.
	Times   []int64   `json:"times"`
	Objects []int     `json:"objects"`
	Events  []float64 `json:"eventsPerSecond"`
	Ages    []float64 `json:"age"`
	Lags    []float64 `json:"lag"`
	Bytes   []int     `json:"bytesPerObject"`
}

// tables answers /api/tables.
func (s *Site) tables(r *http.Request) (any, *failure) {
	found := s.overview()
	switch text := r.URL.Query().Get("history"); text {
	case "":
	case "1", "true":
		if s.mirror == nil {
			break
		}
		for i, table := range s.mirror.Tables() {
			found.Tables[i].History = historyOf(table.History())
		}
	default:
		return nil, &failure{http.StatusBadRequest, fmt.Sprintf("history=%s: 1 is wanted, or nothing", text)}
	}
	return found, nil
}

func (s *Site) overview() overview {
	now := time.Now()
	found := overview{Name: s.options.Name, Time: stamp(now), Tables: []tableStatus{}}
	if s.relay != nil {
		found.Relay = statusOf(s.relay(), s.options.FreshWithin)
		return found
	}
	found.SQL = s.noSQL() == nil
	for _, table := range s.mirror.Tables() {
		found.Tables = append(found.Tables, s.tableStatus(table))
	}
	for _, p := range s.mirror.Problems() {
		if !p.Over() {
			found.Problems++
		}
	}
	return found
}

func (s *Site) tableStatus(table *mirror.Table) tableStatus {
	r, status := table.Resource(), table.Status()
	h := status.Health
	t := tableStatus{
		Name: r.Name(), Group: r.GVR.Group, APIVersion: r.GVR.GroupVersion().String(), Kind: r.Kind, Namespaced: r.Namespaced,
		State: h.State.String(), Synced: h.Synced, Fresh: h.Fresh(s.options.FreshWithin), Version: h.Version,
		LastContact: stamp(h.LastContact), Age: rounded(h.Age.Seconds()), Lag: fine(status.Lag), FromDisk: h.FromDisk,
		Objects: status.Objects, Received: status.Received, Expected: status.Expected,
		EventsPerSecond: rounded(status.EventsPerSecond), BytesPerObject: status.BytesPerObject,
		Failures: h.Failures, Bad: h.BadCount,
		Relists: h.Lists, Watches: h.Watches, Events: h.Events, Rewinds: h.Rewinds, KeepsHistory: s.mirror.KeepsHistory(table),
	}
	if s.mirror.Fleet() {
		for _, h := range h.Sections {
			c := clusterStatus{Name: h.Section, Synced: h.Synced, Fresh: h.Fresh(s.options.FreshWithin), Version: h.Version, Age: rounded(h.Age.Seconds())}
			if h.Err != nil {
				c.Error = render.CutNote(unnamed(t.Name, h.Err.Error()), maxError)
			}
			t.Clusters = append(t.Clusters, c)
		}
	}
	if t.Relists == nil {
		t.Relists = map[string]int64{}
	}
	if h.Err != nil {
		t.Error, t.ErrorSince = render.CutNote(unnamed(t.Name, h.Err.Error()), maxError), stamp(h.ErrSince)
	}
	return t
}

// unnamed is an error without the name of its table, which is shown beside it.
func unnamed(table, text string) string { return strings.TrimPrefix(text, table+": ") }

func historyOf(samples []mirror.Sample) *history {
	h := &history{Times: []int64{}, Objects: []int{}, Events: []float64{}, Ages: []float64{}, Lags: []float64{}, Bytes: []int{}}
	for _, sample := range samples {
		h.Times = append(h.Times, sample.Time.Unix())
		h.Objects = append(h.Objects, sample.Objects)
		h.Events = append(h.Events, rounded(sample.EventsPerSecond))
		h.Ages = append(h.Ages, rounded(sample.Age.Seconds()))
		h.Lags = append(h.Lags, fine(sample.Lag))
		h.Bytes = append(h.Bytes, sample.BytesPerObject)
	}
	return h
}

// pulse is the overview in the form that every page receives once a second. It is made once
// for all of them.
type pulse struct {
	mu   sync.Mutex
	made time.Time
	text string
}

const pulseInterval = time.Second

func (p *pulse) get(make func() overview) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); now.Sub(p.made) >= pulseInterval*9/10 {
		p.made, p.text = now, encodeJSON(make())
	}
	return p.text
}
