package mirror

import (
	"context"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"

	"github.com/tarnproject/tarn/kube"
)

// askTimeout is how long a server may take to say how much there is.
const askTimeout = 30 * time.Second

// expectation is how many objects a table will have, to show progress by.
//
// It is asked for by a list of one object's metadata, which says how many more
// there are. Servers do not say so where a selector narrows the list, and may not
// answer at all: then it is unknown, which harms nobody. Whatever keeps the server
// from answering keeps it from being copied, too, and is told there.
type expectation struct{ objects atomic.Int64 }

func (e *expectation) count() int { return int(e.objects.Load()) }

// learn asks once.
func (e *expectation) learn(ctx context.Context, client metadata.Interface, sources []*kube.Source[Object]) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	sum := int64(0)
	for _, source := range sources {
		c := source.Collection()
		page, err := client.Resource(c.Resource).Namespace(c.Namespace).List(ctx, metav1.ListOptions{
			Limit: 1, LabelSelector: c.LabelSelector, FieldSelector: c.FieldSelector,
		})
		if err != nil || page.Continue != "" && page.RemainingItemCount == nil {
			return
		}
		sum += int64(len(page.Items))
		if page.RemainingItemCount != nil {
			sum += *page.RemainingItemCount
		}
	}
	e.objects.Store(sum)
}
