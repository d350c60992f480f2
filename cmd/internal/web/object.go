package web

import (
	"context"
	"fmt"
	"net/http"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
	"github.com/tarnproject/tarn/internal/render"
)

// objectAnswer is one object.
type objectAnswer struct {
	Table   string         `json:"table"`
	Key     tarn.Key       `json:"key"`
	Kind    string         `json:"kind"`
	UID     string         `json:"uid"`
	Version tarn.Version   `json:"version"`
	Object  map[string]any `json:"object"`
	related
}

// object answers /api/objects/{table}/{key...}.
func (s *Site) object(r *http.Request) (any, *failure) {
	table, problem := s.table(r.PathValue("table"))
	if problem != nil {
		return nil, problem
	}
	key := tarn.Key(r.PathValue("key"))
	object, ok := table.Store().Get(key)
	if !ok {
		return nil, missing(table, key)
	}
	content := s.secretFilter.content(table, object)
	switch as := r.URL.Query().Get("as"); as {
	case "yaml":
		return yaml(content), nil
	case "", "json":
	default:
		return nil, &failure{http.StatusBadRequest, fmt.Sprintf("as=%s: json or yaml is wanted", as)}
	}
	around, err := s.related(key, object)
	if err != nil {
		return nil, &failure{http.StatusInternalServerError, err.Error()}
	}
	return objectAnswer{
		Table: table.Resource().Name(), Key: key, Kind: table.Resource().Kind,
		UID: string(object.GetUID()), Version: tarn.Version(object.GetResourceVersion()),
		Object: content, related: around,
	}, nil
}

func missing(table *mirror.Table, key tarn.Key) *failure {
	return notFound(fmt.Sprintf("%s: there is no %q in the mirror, at version %s", table.Resource().Name(), key, table.Store().Version()))
}

// shownOfAnObject bounds how much of an object the page shows; a reader would not read more.
// One more request returns the whole object, see as=yaml.
var shownOfAnObject = render.Limits{Lines: 4000, Bytes: 1 << 20, Value: 16 << 10}

const (
	// maxEdits bounds the edits of one change, and maxBrief each of their values.
	maxEdits = 200
	maxBrief = 240
)

// objectState is what the page gets when an object changes.
type objectState struct {
	Key     tarn.Key     `json:"key"`
	UID     string       `json:"uid"`
	Version tarn.Version `json:"version"`
	Created string       `json:"created,omitempty"`
	Status  string       `json:"status,omitempty"`
	// Lines is the object as YAML, Edits the differences from the state that was last sent.
	Lines []render.Line `json:"lines"`
	Edits []render.Edit `json:"edits,omitempty"`
	// More is the number of lines that are left out, Shortened the number of cut values;
	// as=yaml returns everything. MoreEdits says that some edits are left out.
	More      int  `json:"more,omitempty"`
	Shortened int  `json:"shortened,omitempty"`
	MoreEdits bool `json:"moreEdits,omitempty"`
	// Again says that another object was created under the same name.
	Again bool `json:"again,omitempty"`
	// Gone says that the object was deleted.
	Gone bool `json:"gone,omitempty"`
}

// objectWatch follows one object. It reads only the newest state, so a slow client misses
// steps and nothing queues up for it.
type objectWatch struct {
	site    *Site
	table   *mirror.Table
	key     tarn.Key
	changed <-chan struct{}
	told    bool
	gone    bool
	last    mirror.Object
	content map[string]any
	related string
}

// next returns the state if it differs from the last one that was sent.
func (w *objectWatch) next(ctx context.Context) (objectState, bool) {
	if w.told && !closed(w.changed) {
		return objectState{}, false
	}
	object, ok, changed := w.table.Store().GetWatch(ctx, w.key)
	w.changed = changed
	switch {
	case !ok && w.told && w.gone:
		return objectState{}, false
	case !ok:
		w.told, w.gone = true, true
		return objectState{Key: w.key, Gone: true}, true
	case w.told && !w.gone && w.last == object:
		return objectState{}, false
	}
	content := w.site.secretFilter.content(w.table, object)
	state := objectState{
		Key: w.key, UID: string(object.GetUID()), Version: tarn.Version(object.GetResourceVersion()),
		Status: w.site.status(w.table, object),
	}
	shown := render.Lines(content, shownOfAnObject)
	state.Lines, state.More, state.Shortened = shown.Lines, shown.More, shown.Shortened
	if created := object.GetCreationTimestamp(); !created.IsZero() {
		state.Created = created.UTC().Format(timeFormat)
	}
	if w.last != nil {
		state.Again = w.last.GetUID() != object.GetUID()
		state.Edits, state.MoreEdits = render.Differences(w.content, content, maxEdits, maxBrief)
	}
	w.told, w.gone, w.last, w.content = true, false, object, content
	return state, true
}

// around returns owners and dependents if they changed.
func (w *objectWatch) around() (string, bool) {
	if w.last == nil {
		return "", false
	}
	found, err := w.site.related(w.key, w.last)
	if err != nil {
		return "", false
	}
	text := encodeJSON(found)
	if text == w.related {
		return "", false
	}
	w.related = text
	return text, true
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
