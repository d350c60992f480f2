package tarn

import "slices"

// SubscriberLag tells how far one who follows a replica is behind.
type SubscriberLag struct {
	// Name is that of the subscription; empty for a reader of Changes.
	Name string
	Lag
}

// Subscribers tells of everyone who follows the replica how far he is behind, in
// the order in which they came.
func (r *Replica[T]) Subscribers() []SubscriberLag {
	followers := r.fanout.present()
	all := make([]SubscriberLag, len(followers))
	for i, f := range followers {
		s := f.subscription
		if s == nil {
			s = &Subscription[T]{fanout: r.fanout, follower: f} // only to be asked
		}
		all[i] = SubscriberLag{Name: s.opts.Name, Lag: s.Lag()}
	}
	return all
}

// present are the followers of this moment.
func (h *fanout[T]) present() []*follower[T] {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.followers)
}
