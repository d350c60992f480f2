package contender

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	upstream "k8s.io/client-go/tools/cache"
)

// indexers are those that client-go's generated informers have.
func indexers() upstream.Indexers {
	return upstream.Indexers{upstream.NamespaceIndex: upstream.MetaNamespaceIndexFunc}
}

// handler passes new states on.
func handler(s Setup) upstream.ResourceEventHandler {
	return upstream.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { s.Changed(object.(metav1.Object)) },
		UpdateFunc: func(_, object any) { s.Changed(object.(metav1.Object)) },
	}
}

// runInformer starts an informer and reads from it as listers do.
func runInformer(ctx context.Context, informer upstream.SharedIndexInformer, s Setup) (Copy, error) {
	registration, err := informer.AddEventHandler(handler(s))
	if err != nil {
		return Copy{}, fmt.Errorf("add a handler: %w", err)
	}
	go informer.RunWithContext(ctx)
	indexer := informer.GetIndexer()
	return Copy{
		Synced: func(ctx context.Context) error {
			select {
			case <-registration.HasSyncedChecker().Done():
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		},
		Get: func(namespace, name string) (metav1.Object, error) {
			object, exists, err := indexer.GetByKey(namespace + "/" + name)
			if err == nil && !exists {
				err = fmt.Errorf("%s/%s is not in the store", namespace, name)
			}
			if err != nil {
				return nil, err
			}
			return object.(metav1.Object), nil
		},
		List: func(visit func(metav1.Object)) error {
			for _, object := range indexer.List() {
				visit(object.(metav1.Object))
			}
			return nil
		},
	}, nil
}
