package tarn_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/story"
)

// scripted is a source that plays the server of a story.
type scripted struct {
	*story.Server
	// open counts the streams that were not closed yet.
	open int
}

func newScripted(s *story.Script) *scripted { return &scripted{Server: story.NewServer(s)} }

// parseScripted is a source for tests that are not stories: its script is the
// section "server" of one.
func parseScripted(t *testing.T, server string) *scripted {
	t.Helper()
	s, err := story.ParseScript(server)
	if err != nil {
		t.Fatal(err)
	}
	return newScripted(s)
}

// wantRequests compares what was asked with a section "requests".
func (s *scripted) wantRequests(t *testing.T, want string) {
	t.Helper()
	if got := strings.TrimSpace(s.Requests()); got != want {
		t.Errorf("the source was asked:\n%s\nwant:\n%s", got, want)
	}
}

func (s *scripted) List(ctx context.Context, q tarn.ListQuery) (tarn.Page[*thing], error) {
	verb := "list"
	if q.Limit == 1 && q.AtLeast == tarn.Latest && q.Continue == "" {
		verb = "probe"
	}
	a := s.Next(verb, showListQuery(q))
	defer s.End()
	var page tarn.Page[*thing]
	if err := a.Wait(ctx); err != nil {
		return page, err
	}
	if words, ok := a.Fault(); ok {
		return page, fault(words)
	}
	s.Mention(a.Version())
	page.Version, page.Continue = tarn.Version(a.Version()), a.Value("continue")
	for _, item := range a.Parts {
		o, bad := parseObject(item)
		if bad != nil {
			page.Bad = append(page.Bad, *bad)
		} else {
			page.Items = append(page.Items, o)
		}
	}
	return page, nil
}

func (s *scripted) Watch(ctx context.Context, q tarn.WatchQuery) (tarn.Stream[*thing], error) {
	verb := "watch"
	if q.Initial {
		verb = "stream"
	}
	a := s.Next(verb, showWatchQuery(q))
	if err := a.Wait(ctx); err != nil {
		s.End()
		return nil, err
	}
	if words, ok := a.Fault(); ok {
		s.End()
		return nil, fault(words)
	}
	s.open++
	return &scriptedStream{source: s, events: s.Play(a, q.Timeout)}, nil
}

func (s *scripted) Describe(o *thing) (tarn.Meta, error) {
	if o == nil {
		return tarn.Meta{}, errors.New("nil object")
	}
	m := tarn.Meta{Version: tarn.Version(o.version), UID: o.uid}
	if o.name == "" {
		return m, errors.New("no name")
	}
	m.Key = tarn.Key(o.name)
	return m, nil
}

// showListQuery is the text of a request for a list.
func showListQuery(q tarn.ListQuery) string {
	words := []string{"rv=" + showVersion(q.AtLeast)}
	if q.Limit != 0 {
		words = append(words, fmt.Sprintf("limit=%d", q.Limit))
	}
	if q.Continue != "" {
		words = append(words, "continue="+q.Continue)
	}
	if q.Exact || q.Key != "" {
		words = append(words, fmt.Sprintf("UNEXPECTED %+v", q))
	}
	if q.Afresh {
		words = append(words, "afresh")
	}
	return strings.Join(words, " ")
}

// showWatchQuery is the text of a request for a watch or a stream.
func showWatchQuery(q tarn.WatchQuery) string {
	text := "rv=" + showVersion(q.From) + " " + story.ShowTimeout(q.Timeout)
	if q.Afresh {
		text += " afresh"
	}
	return text
}

func showVersion(v tarn.Version) string {
	switch v {
	case tarn.Latest:
		return "latest"
	case tarn.Any:
		return "any"
	}
	return string(v)
}

// scriptedStream plays the events of one watch.
type scriptedStream struct {
	source *scripted
	events *story.Player
	closed bool
}

func (s *scriptedStream) Next(ctx context.Context, buf []tarn.Event[*thing]) (int, error) {
	words, err := s.events.Next(ctx.Done())
	switch {
	case err == story.ErrStopped:
		return 0, ctx.Err()
	case err == io.EOF:
		return 0, err
	case words[0] == "error":
		return 0, fault(words[1:])
	}
	buf[0] = s.source.event(words)
	return 1, nil
}

func (s *scriptedStream) Close() {
	if !s.closed {
		s.closed = true
		s.source.open--
		s.source.End()
	}
}

var eventTypes = map[string]tarn.EventType{
	"add": tarn.EventAdded, "mod": tarn.EventModified, "del": tarn.EventDeleted, "bookmark": tarn.EventBookmark, "end": tarn.EventBookmark,
}

// event makes an event of its words.
func (s *scripted) event(words []string) tarn.Event[*thing] {
	if words[0] == "garbled" {
		return tarn.Event[*thing]{Type: tarn.EventUndecodable, Bad: tarn.BadObject{Err: tarn.ErrUndecodable}}
	}
	e := tarn.Event[*thing]{Type: eventTypes[words[0]]}
	switch {
	case e.Type == 0 || len(words) != 2:
		panic("no event: " + strings.Join(words, " "))
	case words[1] == "bad":
		e.Bad = tarn.BadObject{Err: errUnreadable}
	case e.Type == tarn.EventBookmark:
		e.Version, e.InitialEnd = tarn.Version(words[1]), words[0] == "end"
	default:
		o, bad := parseObject(words[1])
		if bad != nil {
			e.Bad = *bad
		} else if e.Object = o; o != nil {
			s.Mention(o.version)
		}
	}
	return e
}

// statuses are the errors of a server by what they mean to the reflector.
var statuses = map[string]tarn.Reason{
	"410": tarn.ReasonExpired, "429": tarn.ReasonBusy, "500": tarn.ReasonInternal, "422": tarn.ReasonNoWatchList,
	"toolarge": tarn.ReasonTooNew, "refused": tarn.ReasonRefused, "reset": tarn.ReasonLost,
}

// fault makes an error of its words, such as "429 after=20"; words that mean
// nothing to the reflector are the text of an error.
func fault(words []string) error {
	reason, known := statuses[words[0]]
	switch {
	case words[0] == "403":
		return errors.New("forbidden")
	case !known:
		return errors.New(strings.Join(words, " "))
	}
	after := 0
	if len(words) > 1 {
		var err error
		if after, err = strconv.Atoi(strings.TrimPrefix(words[1], "after=")); err != nil {
			panic(err)
		}
	}
	return tarn.Because(reason, time.Duration(after)*time.Second, errors.New(words[0]))
}
