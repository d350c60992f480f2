package tarn

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A recheck reads afresh, once; other reads do not.
func TestRecheckReadsAfresh(t *testing.T) {
	for name, watchList := range map[string]bool{"list": false, "stream": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := &asked{remote: newRemote("a")}
				r, err := NewReplica[*entry](source, newPlainStore(), Options[*entry]{WatchList: watchList})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := cancelable(t)
				go func() { _ = r.Run(ctx) }()
				time.Sleep(time.Minute)
				r.Recheck("")
				time.Sleep(time.Minute)
				source.fail(errors.New("away"))
				source.hangUp()
				time.Sleep(time.Second)
				source.fail(nil)
				time.Sleep(time.Minute)
				cancel()
				<-r.Done()
				var afresh []bool
				for _, q := range source.questions {
					if q.whole {
						afresh = append(afresh, q.afresh)
					}
				}
				if want := []bool{false, true, false}; !slices.Equal(afresh, want) {
					t.Errorf("afresh: %v, should be %v", afresh, want)
				}
			})
		})
	}
}
