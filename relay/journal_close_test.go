package relay

import (
	"errors"
	"sync"
	"testing"
)

// A journal may be closed while it is read: when the definition of a custom resource changes,
// requests for its past are still under way.
func TestJournalClosedWhileRead(t *testing.T) {
	for range 50 {
		s, _ := diskState(t, t.TempDir(), 1<<20)
		var reading sync.WaitGroup
		begun := make(chan struct{}, 4)
		data := s.journal.encoder.EncodeAll(encoded(t, &chunk{}), nil)
		for range 4 {
			reading.Go(func() {
				for i := 0; ; i++ {
					if _, err := s.journal.decode(data); err != nil {
						if !errors.Is(err, errNoJournal) {
							t.Error(err)
						}
						return
					}
					if i == 0 {
						begun <- struct{}{}
					}
				}
			})
		}
		for range 4 {
			<-begun
		}
		s.journal.close()
		reading.Wait()
	}
}
