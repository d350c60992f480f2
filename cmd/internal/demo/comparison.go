package demo

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/verify"
)

// Comparison holds a mirror against its server, by a way of its own: whatever
// goes wrong on the mirror's does not concern it.
type Comparison struct {
	targets []verify.Target[mirror.Object]
}

// NewComparison reads the server by the config given.
func NewComparison(m *mirror.Mirror, cfg *rest.Config) (*Comparison, error) {
	client, err := kube.NewClient(cfg)
	if err != nil {
		return nil, err
	}
	c := &Comparison{}
	for _, t := range m.Tables() {
		source, err := kube.NewSource[mirror.Object](client, t.Source().Collection(), kube.SourceOptions{
			Drop: []string{"metadata.managedFields"}, Unshared: true,
		})
		if err != nil {
			return nil, err
		}
		c.targets = append(c.targets, verify.Target[mirror.Object]{
			Name: t.Resource().Name(), Replica: t.Replica(), Store: t.Store(), Transform: t.Transform(),
			Sources: []tarn.Source[mirror.Object]{source},
		})
	}
	return c, nil
}

// Finding is how a comparison went.
type Finding struct {
	// Tables counts all, Equal those that are as the server was at their version,
	// and Objects what is in these.
	Tables, Equal, Objects int
	// Different says which tables are not, and how; Open which could not be
	// compared, and why.
	Different, Open []string
}

const (
	// patience is for a table that has nothing yet, or is too far behind for the
	// server to remember.
	patience = 3 * time.Second
	// reading is what an object may take beyond that, on a busy machine.
	reading = time.Millisecond
)

// Patience is how long to wait for Compare when somebody waits for the end: most
// tables are right at once.
func (c *Comparison) Patience() time.Duration {
	all := 3 * patience
	for _, target := range c.targets {
		all += patienceWith(target) - patience
	}
	return all
}

func patienceWith(target verify.Target[mirror.Object]) time.Duration {
	return patience + time.Duration(target.Replica.Len())*reading
}

// Compare looks at all tables, until ctx ends.
func (c *Comparison) Compare(ctx context.Context) Finding {
	f := Finding{Tables: len(c.targets)}
	for _, target := range c.targets {
		within, cancel := context.WithTimeout(ctx, patienceWith(target))
		result, err := verify.Once(within, target, verify.Options{NoDigest: true})
		cancel()
		switch {
		case err != nil:
			f.Open = append(f.Open, fmt.Sprintf("%s: %v", target.Name, err))
		case result.Verdict == verify.Equal:
			f.Equal++
			f.Objects += result.Objects
		case result.Verdict == verify.Different:
			f.Different = append(f.Different, result.String())
		default:
			f.Open = append(f.Open, result.String())
		}
	}
	return f
}
