package web

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/changelog"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
	"github.com/tarnproject/tarn/internal/render"
)

// objectHistory is a part of the known states of a key.
type objectHistory struct {
	Table string   `json:"table"`
	Key   tarn.Key `json:"key"`
	pastAnswer
	// States are in order, newest first, with gaps in their places.
	States []pastState `json:"states"`
	// Continue is missing after the oldest.
	Continue string `json:"continue,omitempty"`
}

// pastState is a state of an object, or a gap.
type pastState struct {
	// State is the number of the state in a request for it.
	State     changelog.Seq `json:"state"`
	Operation string        `json:"operation,omitempty"`
	// Time is when the state was received, Until when the next one was received.
	Time    string       `json:"time,omitempty"`
	Until   string       `json:"until,omitempty"`
	Version tarn.Version `json:"version,omitempty"`
	UID     string       `json:"uid,omitempty"`
	Status  string       `json:"status,omitempty"`
	// Edits are the differences from the state before. MoreEdits says that some of them are
	// left out. NoBefore says that the state before is not kept.
	Edits     []render.Edit `json:"edits,omitempty"`
	MoreEdits bool          `json:"moreEdits,omitempty"`
	NoBefore  bool          `json:"noBefore,omitempty"`

	Gap *gapAnswer `json:"gap,omitempty"`
}

// wholeState is a state with its object as YAML.
type wholeState struct {
	Table string   `json:"table"`
	Key   tarn.Key `json:"key"`
	pastState
	Created   string        `json:"created,omitempty"`
	Lines     []render.Line `json:"lines"`
	More      int           `json:"more,omitempty"`
	Shortened int           `json:"shortened,omitempty"`
}

// objectHistory answers /api/history/{table}/{key...}.
func (s *Site) objectHistory(r *http.Request) (found any, problem *failure) {
	values, key := r.URL.Query(), tarn.Key(r.PathValue("key"))
	limit, err := readNumber(values, "limit", defaultLimit, 1, maxLimit)
	if err != nil {
		return nil, badRequest(err)
	}
	before, err := readState(values.Get("continue"), "continue")
	if err != nil {
		return nil, badRequest(err)
	}
	one, err := readState(values.Get("state"), "state")
	if err != nil {
		return nil, badRequest(err)
	}
	as := values.Get("as")
	if as != "" && as != "json" && (as != "yaml" || one == 0) {
		return nil, badRequest(fmt.Errorf("as=%s: json is wanted, or yaml with the number of a state", as))
	}
	problem = s.readPast(r, time.Time{}, func(past *pastReader) (err error) {
		w := &objectWalk{site: s, past: past, key: key}
		if one != 0 {
			found, err = w.whole(one, as == "yaml")
		} else {
			found, err = w.page(before, limit)
		}
		return err
	})
	return found, problem
}

func readState(text, name string) (changelog.Seq, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%s=%s: the number of a state is wanted", name, text)
	}
	return changelog.Seq(n), nil
}

// objectWalk reads the history of one key.
type objectWalk struct {
	site *Site
	past *pastReader
	key  tarn.Key
	// last is the state that was read last, content its object; nil if the next state has
	// nothing to be compared with.
	last    *changelog.State
	content map[string]any
	object  mirror.Object
}

// page returns the last entries before a place. It walks the history twice: first to find
// where the page begins, since a log is read from its oldest entry, and then to decode its
// states. So it holds two objects at a time, however many states there are.
func (w *objectWalk) page(before changelog.Seq, limit int) (*objectHistory, error) {
	found := &objectHistory{Table: w.past.table.Resource().Name(), Key: w.key, pastAnswer: w.past.about, States: []pastState{}}
	var window []changelog.Seq
	first, seen := changelog.Seq(0), false // first is the state before the window
	states := map[changelog.Seq]bool{}
	for e, err := range w.past.Of(w.past.ctx, w.key) {
		if err != nil {
			return nil, err
		}
		if seen = true; before != 0 && e.Seq >= before {
			break
		}
		window = append(window, e.Seq)
		states[e.Seq] = e.Gap == nil
		if len(window) > limit {
			if states[window[0]] {
				first = window[0]
			}
			delete(states, window[0])
			window = window[1:]
			found.Continue = strconv.FormatInt(int64(window[0]), 10)
		}
	}
	if !seen {
		return nil, w.unknown()
	}
	if len(window) == 0 {
		return found, nil
	}
	for e, err := range w.past.Of(w.past.ctx, w.key) {
		switch {
		case err != nil:
			return nil, err
		case e.Seq < window[0] && e.Seq != first:
			continue
		case e.Seq > window[len(window)-1]:
			return w.newestFirst(found), nil
		}
		state, err := w.take(e)
		if err != nil {
			return nil, err
		}
		if e.Seq >= window[0] {
			found.States = append(found.States, state)
		}
		if state.Gap != nil {
			found.Gaps = append(found.Gaps, *state.Gap)
		}
	}
	return w.newestFirst(found), nil
}

func (w *objectWalk) newestFirst(found *objectHistory) *objectHistory {
	for i, j := 0, len(found.States)-1; i < j; i, j = i+1, j-1 {
		found.States[i], found.States[j] = found.States[j], found.States[i]
	}
	return found
}

// whole returns one state with its object.
func (w *objectWalk) whole(wanted changelog.Seq, plain bool) (any, error) {
	var before *changelog.State
	for e, err := range w.past.Of(w.past.ctx, w.key) {
		switch {
		case err != nil:
			return nil, err
		case e.Gap != nil || e.Seq > wanted:
			continue
		case e.Seq < wanted:
			before = &e.State
			continue
		}
		if before != nil {
			if _, err := w.take(changelog.Entry{State: *before}); err != nil {
				return nil, err
			}
		}
		state, err := w.take(e)
		if err != nil {
			return nil, err
		}
		if plain {
			return yaml(w.content), nil
		}
		shown := render.Lines(w.content, shownOfAnObject)
		found := wholeState{Table: w.past.table.Resource().Name(), Key: w.key, pastState: state, Lines: shown.Lines, More: shown.More, Shortened: shown.Shortened}
		if created := w.object.GetCreationTimestamp(); !created.IsZero() {
			found.Created = created.UTC().Format(timeFormat)
		}
		return found, nil
	}
	return nil, notFound(fmt.Sprintf("%s: there is no state %d of %q: it was removed, or belongs to another object", w.past.table.Resource().Name(), wanted, w.key))
}

// take describes an entry, and what differs from the state before.
func (w *objectWalk) take(e changelog.Entry) (pastState, error) {
	state := pastState{State: e.Seq}
	if e.Gap != nil {
		gap := gapOf(*e.Gap)
		state.Gap = &gap
		return state, nil
	}
	object, err := w.past.Decode(e.State)
	if err != nil {
		return state, err
	}
	content := w.site.secretFilter.content(w.past.table, object)
	state.Operation, state.Time, state.Until, state.Version, state.UID = e.Operation.String(), stamp(e.Heard), stamp(e.Until), e.Version, e.UID
	state.Status = w.site.status(w.past.table, object)
	comparable := w.last != nil && w.last.UID == e.UID && w.last.Operation != changelog.Deleted
	switch {
	case e.Operation == changelog.Deleted || e.Operation == changelog.Added && !comparable:
	case comparable:
		state.Edits, state.MoreEdits = render.Differences(w.content, content, maxEdits, maxBrief)
	default:
		state.NoBefore = true
	}
	w.last, w.content, w.object = &e.State, content, object
	return state, nil
}

func (w *objectWalk) unknown() error {
	return notFound(fmt.Sprintf("%s: nothing is known of %q since %s, when its history begins", w.past.table.Resource().Name(), w.key, w.past.about.Since))
}
