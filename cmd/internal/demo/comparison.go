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

// Comparison compares a mirror with its server, over its own connection: faults
// of the mirror's connection do not affect it.
type Comparison struct {
	targets []verify.Target[mirror.Object]
}

// NewComparison reads the server with this config.
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

// Finding is the result of a comparison.
type Finding struct {
	// Tables counts all tables, Equal those that equal the server at their version,
	// and Objects the objects in the equal ones.
	Tables, Equal, Objects int
	// Different says which tables differ, and how; Undecided which could not be
	// compared, and why.
	Different, Undecided []string
}

const (
	// compareTimeout is for a table that has nothing yet, or is too far behind for the server
	// to remember.
	compareTimeout = 3 * time.Second
	// timePerObject is added for each object, for a busy machine.
	timePerObject = time.Millisecond
)

// Timeout is how long Compare may take before the program reports that it did not finish.
// Most tables are equal at once.
func (c *Comparison) Timeout() time.Duration {
	all := 3 * compareTimeout
	for _, target := range c.targets {
		all += timeoutOf(target) - compareTimeout
	}
	return all
}

func timeoutOf(target verify.Target[mirror.Object]) time.Duration {
	return compareTimeout + time.Duration(target.Replica.Len())*timePerObject
}

// Compare compares all tables, until ctx ends.
func (c *Comparison) Compare(ctx context.Context) Finding {
	f := Finding{Tables: len(c.targets)}
	for _, target := range c.targets {
		within, cancel := context.WithTimeout(ctx, timeoutOf(target))
		result, err := verify.Once(within, target, verify.Options{NoDigest: true})
		cancel()
		switch {
		case err != nil:
			f.Undecided = append(f.Undecided, fmt.Sprintf("%s: %v", target.Name, err))
		case result.Verdict == verify.Equal:
			f.Equal++
			f.Objects += result.Objects
		case result.Verdict == verify.Different:
			f.Different = append(f.Different, result.String())
		default:
			f.Undecided = append(f.Undecided, result.String())
		}
	}
	return f
}
