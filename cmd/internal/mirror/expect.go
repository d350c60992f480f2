package mirror

import (
	"context"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"

	"github.com/tarnproject/tarn/kube"
)

// askTimeout is how long a server may take to count the objects.
const askTimeout = 30 * time.Second

// expectation is the expected number of objects of a table, for the progress display.
//
// A list of one object's metadata asks for it: the answer says how many more there are.
// Servers leave that out if a selector narrows the list, and may not answer at all: then the
// number is unknown, which does no harm. If the server cannot answer this list, it cannot be
// copied either, and that failure is reported.
type expectation struct{ objects atomic.Int64 }

func (e *expectation) count() int { return int(e.objects.Load()) }

// learn sends the request once.
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
