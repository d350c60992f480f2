package relay

import (
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// limits bounds what one caller may have open, so that a caller that is out of control
// does not block the others.
type limits struct {
	watches, requests int

	mu sync.Mutex
	by map[string]*usage
}

type usage struct{ watches, requests int }

// enter counts a request of a caller until leave is called.
func (l *limits) enter(caller string, watch bool) (leave func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.by[caller]
	if u == nil {
		u = &usage{}
	}
	count, most, what := &u.requests, l.requests, "requests in flight"
	if watch {
		count, most, what = &u.watches, l.watches, "open watches"
	}
	if *count >= most {
		return nil, apierrors.NewTooManyRequests(fmt.Sprintf("%s has %d %s, which is the limit of this relay", caller, *count, what), 1)
	}
	if l.by == nil {
		l.by = map[string]*usage{}
	}
	l.by[caller] = u
	*count++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		*count--
		if *u == (usage{}) {
			delete(l.by, caller)
		}
	}, nil
}
