package tarn

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// noting is a source that notes which reads were to use nothing of what was made before.
type noting struct {
	*remote
	mu     sync.Mutex
	afresh []bool
}

func (n *noting) note(afresh bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.afresh = append(n.afresh, afresh)
}

func (n *noting) List(ctx context.Context, q ListQuery) (Page[*entry], error) {
	n.note(q.Afresh)
	return n.remote.List(ctx, q)
}

func (n *noting) Watch(ctx context.Context, q WatchQuery) (Stream[*entry], error) {
	if q.Initial {
		n.note(q.Afresh)
	}
	return n.remote.Watch(ctx, q)
}

// A recheck reads afresh, once; other reads do not.
func TestRecheckReadsAfresh(t *testing.T) {
	for name, watchList := range map[string]bool{"list": false, "stream": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := &noting{remote: newRemote("a")}
				r, err := NewReplica[*entry](source, newPlainStore(), Options[*entry]{WatchList: watchList})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := cancelable(t)
				go func() { _ = r.Run(ctx) }()
				time.Sleep(time.Minute)
				r.Recheck("")
				time.Sleep(time.Minute)
				source.compact()
				source.hangUp()
				time.Sleep(time.Minute)
				cancel()
				<-r.Done()
				if want := []bool{false, true, false}; !slices.Equal(source.afresh, want) {
					t.Errorf("afresh: %v, should be %v", source.afresh, want)
				}
			})
		})
	}
}
