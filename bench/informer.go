package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	upstream "k8s.io/client-go/tools/cache"
)

// pollEvery is how often a scenario checks the state of an informer, where nothing
// signals it.
const pollEvery = time.Millisecond

// indexers are those that client-go's generated pod informers have.
func indexers() upstream.Indexers {
	return upstream.Indexers{upstream.NamespaceIndex: upstream.MetaNamespaceIndexFunc}
}

// runInformer runs an informer on src with these handlers until it has synced.
// The returned function stops it and waits for its end.
func runInformer(ctx context.Context, create newInformer, src *source, handlers ...upstream.ResourceEventHandler) (upstream.SharedIndexInformer, func(), error) {
	informer := create(src, &corev1.Pod{}, 0, indexers())
	for _, h := range handlers {
		if _, err := informer.AddEventHandler(h); err != nil {
			return nil, nil, fmt.Errorf("add a handler: %w", err)
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		informer.RunWithContext(ctx)
	}()
	stop := func() { cancel(); <-ended }
	if err := until(ctx, "the informer has synced", informer.HasSynced); err != nil {
		stop()
		return nil, nil, err
	}
	return informer, stop, nil
}

// until waits for a condition that can only be polled.
func until(ctx context.Context, what string, reached func() bool) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for !reached() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("wait until %s: %w", what, context.Cause(ctx))
		}
	}
	return nil
}

// receive waits for a value.
func receive[T any](ctx context.Context, from <-chan T, what string) (T, error) {
	select {
	case v := <-from:
		return v, nil
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("wait for %s: %w", what, context.Cause(ctx))
	}
}
