package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarnproject/tarn"
)

// Of two feeders one writes. The other says who that is, and takes over when it ends.
func TestSecondFeederWaits(t *testing.T) {
	address := database(t)
	one, two := connect(t, address, Options{}), connect(t, address, Options{})
	first := NewSink(one, "things", "all", plain{})
	must(t, open(t.Context(), first))
	must(t, first.Commit(t.Context(), whole(batch("1", thing("a", "1", "by the first")))))

	second := NewSink(two, "things", "all", plain{})
	err := open(t.Context(), second)
	if !isOwned(err) || !strings.Contains(err.Error(), one.holder) || !strings.Contains(err.Error(), "waits") {
		t.Errorf("the second feeder says %v", err)
	}
	first.Close()
	kept, err := second.Open(t.Context(), nil)
	must(t, err)
	if !slices.Equal(kept.Positions, []tarn.Position{tarn.At("1")}) {
		t.Errorf("it begins at %v", kept.Positions)
	}
	must(t, second.Commit(t.Context(), batch("2", thing("b", "2", "by the second"))))
	second.Close()
}

// A feeder of other resources, or of another cluster, is not held up.
func TestOtherFeedersDoNotWait(t *testing.T) {
	address := database(t)
	one, two, three := connect(t, address, Options{Cluster: "one"}), connect(t, address, Options{Cluster: "two"}), connect(t, address, Options{Cluster: "one"})
	must(t, one.Claim(t.Context(), "pods", "nodes"))
	must(t, two.Claim(t.Context(), "pods"))
	must(t, three.Claim(t.Context(), "events"))
	// All or none: it does not keep what it could have had.
	if err := three.Claim(t.Context(), "deployments", "nodes"); !isOwned(err) {
		t.Errorf("it has claimed nodes: %v", err)
	}
	must(t, one.Claim(t.Context(), "deployments"))
}

// A feeder that was silent for too long is replaced. What it then tries to write fails as a
// whole; when it is its turn again, it sends everything, and only once its copy is not older.
func TestSilentFeederIsFenced(t *testing.T) {
	address := database(t)
	one, two := connect(t, address, Options{Lease: 200 * time.Millisecond}), connect(t, address, Options{})
	first, second := opened(t, one), NewSink(two, "things", "all", plain{})
	must(t, first.Commit(t.Context(), whole(batch("1", thing("a", "1", "by the first")))))
	one.leases.stop()
	eventually(t, "the second takes over", func() bool {
		err := open(t.Context(), second)
		return err == nil || !isOwned(err)
	})
	must(t, second.Commit(t.Context(), batch("5", thing("b", "5", "by the second"))))

	late := batch("3", thing("a", "3", "too late"))
	late.Gaps = []tarn.Gap{{From: "1", To: "3", Cause: tarn.GapFolded}}
	if err := first.Commit(t.Context(), late); !errors.Is(err, errLost) {
		t.Errorf("the fenced feeder is told %v", err)
	}
	if err := first.Commit(t.Context(), batch("4")); !isOwned(err) {
		t.Errorf("then it is told %v", err)
	}
	if got := two.query(t, "SELECT key, resource_version FROM things ORDER BY key"); !slices.Equal(got, []string{"a|1", "b|5"}) {
		t.Errorf("the table has %q", got)
	}
	if got := two.query(t, "SELECT * FROM tarn_gaps"); len(got) > 0 {
		t.Errorf("there are gaps %q", got)
	}

	second.Close()
	for _, b := range []tarn.Batch[object]{batch("4", thing("a", "4", "not whole")), whole(batch("4", thing("a", "4", "older")))} {
		if err := first.Commit(t.Context(), b); !errors.Is(err, tarn.ErrSinkEmpty) {
			t.Errorf("a copy that may lack something is told %v", err)
		}
	}
	must(t, first.Commit(t.Context(), whole(batch("6", thing("a", "4", "x"), thing("b", "5", "by the second")))))
	if got := one.query(t, "SELECT key, resource_version FROM things ORDER BY key"); !slices.Equal(got, []string{"a|4", "b|5"}) {
		t.Errorf("the table has %q", got)
	}
}

// A feeder that has nothing to write, or writes for long, keeps its lease.
func TestLeaseIsProlonged(t *testing.T) {
	address := database(t)
	one, two := connect(t, address, Options{Lease: 300 * time.Millisecond}), connect(t, address, Options{})
	must(t, one.Claim(t.Context(), "things"))
	until := func() string { return one.query(t, "SELECT lease_until::text FROM tarn_feeds")[0] }
	for range 3 {
		before := until()
		eventually(t, "a heartbeat", func() bool { return until() > before })
	}
	one.leases.stop()
	tx, err := one.pool.Begin(t.Context())
	must(t, err)
	_, err = tx.Exec(t.Context(), "SELECT FROM tarn_feeds FOR UPDATE")
	must(t, err)
	eventually(t, "the lease ends", func() bool {
		return two.query(t, "SELECT lease_until < clock_timestamp() FROM tarn_feeds")[0] == "true"
	})
	if err := two.Claim(t.Context(), "things"); !isOwned(err) || !strings.Contains(err.Error(), "just written") {
		t.Errorf("in the midst of a transaction the second is told %v", err)
	}
	must(t, tx.Rollback(t.Context()))
	must(t, two.Claim(t.Context(), "things"))
}

// A resource has one sink in a process.
func TestTwoSinksOfOneResource(t *testing.T) {
	db := connect(t, database(t), Options{})
	opened(t, db)
	if err := open(t.Context(), NewSink(db, "things", "all", plain{})); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("the second sink is told %v", err)
	}
}

// paused is a codec that stops within the rows of a batch, as a process that is paused.
type paused struct {
	plain
	reached, resume chan struct{}
}

func (p paused) Row(o object) (Row, error) {
	if o.Key == "pause" {
		p.reached <- struct{}{}
		<-p.resume
	}
	return p.plain.Row(o)
}

// A feeder that is paused in the midst of a COPY does not hold the row of its position: another
// one takes over once the lease has ended. What the paused one then commits fails as a whole.
func TestFeederPausedInACopy(t *testing.T) {
	for _, history := range []bool{false, true} {
		t.Run(fmt.Sprint("history ", history), func(t *testing.T) {
			address := database(t)
			one, two := connect(t, address, Options{Lease: 200 * time.Millisecond, History: history}), connect(t, address, Options{History: history})
			codec := paused{reached: make(chan struct{}), resume: make(chan struct{})}
			first, second := NewSink(one, "things", "all", codec), NewSink(two, "things", "all", plain{})
			must(t, open(t.Context(), first))
			t.Cleanup(first.Close)
			must(t, first.Commit(t.Context(), whole(batch("1", thing("a", "1", "by the first")))))
			committed := make(chan error, 1)
			go func() {
				committed <- first.Commit(t.Context(), batch("3", thing("a", "2", "too late"), thing("pause", "3", "too late")))
			}()
			<-codec.reached
			one.leases.stop()
			waiting, end := context.WithTimeout(t.Context(), 10*time.Second)
			defer end()
			err := open(waiting, second)
			for ; isOwned(err) && waiting.Err() == nil; err = open(waiting, second) {
				time.Sleep(5 * time.Millisecond)
			}
			if err == nil {
				err = second.Commit(waiting, batch("5", thing("b", "5", "by the second")))
			}
			if err != nil {
				t.Errorf("while the first is paused the second is told %v", err)
			}
			close(codec.resume)
			if err := <-committed; !errors.Is(err, errLost) {
				t.Errorf("the paused feeder is told %v", err)
			}
			two.wants(t, "SELECT key, resource_version FROM things ORDER BY key", "a|1", "b|5")
			two.wants(t, "SELECT version FROM tarn_positions", "5")
			if history {
				two.wants(t, "SELECT version FROM things_history ORDER BY seq", "1", "5")
			}
			second.Close()
		})
	}
}
