package tarn

import "slices"

// SubscriberLag is the lag of one follower of a replica.
type SubscriberLag struct {
	// Name is that of the subscription; empty for a reader of Changes.
	Name string
	Lag
}

// Subscribers returns the lag of each follower, in the order in which they joined.
func (r *Replica[T]) Subscribers() []SubscriberLag {
	followers := r.fanout.currentFollowers()
	all := make([]SubscriberLag, len(followers))
	for i, f := range followers {
		s := f.subscription
		if s == nil {
			s = &Subscription[T]{fanout: r.fanout, follower: f} // only to call Lag
		}
		all[i] = SubscriberLag{Name: s.opts.Name, Lag: s.Lag()}
	}
	return all
}

// present are the followers of this moment.
func (h *fanout[T]) currentFollowers() []*follower[T] {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.followers)
}
