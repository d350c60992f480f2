package etcd

import "time"

// CheckEvery makes streams ask more often than users need.
func (s *Source[V]) CheckEvery(d time.Duration) { s.checkEvery = d }
