package shards

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tarnproject/tarn/kube"
)

// Options configure a [Member]. All members of a group must have the same Namespace, Group
// and Key.
type Options struct {
	// Namespace has the Leases, and Group begins their names. Both are required.
	Namespace, Group string
	// Identity is the name of the process, its host's name if empty. A random ending
	// makes it unique, for each time that the process joins.
	Identity string
	// Key is the field by which objects are divided; [kube.ShardByUID] if empty.
	Key kube.ShardKey
	// Duration is how long others wait for a member that does not renew its Lease, 15
	// seconds if 0. It must be whole seconds. Margin is how much sooner the member itself
	// stops, a third of that if 0: see the promises of the package. It renews three times
	// in the time between.
	Duration, Margin time.Duration
	// OnGain is called when the member has become the owner of more objects, which its
	// copies already have, or may work again on objects that Begin refused for a while; set
	// has these. It must return soon.
	OnGain func(set kube.ShardSet)
	// OnError gets every failure; if nil, the Logger logs them, slog's default if nil.
	OnError func(ctx context.Context, err error)
	Logger  *slog.Logger

	// now is the clock, for tests.
	now func() time.Time
}

const (
	defaultDuration = 15 * time.Second
	minDuration     = time.Second
	// maxName leaves room for the ending of a Lease's name.
	maxName = 180
)

func (o Options) withDefaults() (Options, error) {
	if o.Identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return o, fmt.Errorf("shards: the host has no name: give Options.Identity: %w", err)
		}
		o.Identity = strings.ToLower(host)
	}
	o.Key = cmp.Or(o.Key, kube.ShardByUID)
	o.Duration = cmp.Or(o.Duration, defaultDuration)
	o.Margin = cmp.Or(o.Margin, o.Duration/3)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.OnError == nil {
		o.OnError = func(ctx context.Context, err error) { o.Logger.WarnContext(ctx, "shards", "error", err) }
	}
	if o.OnGain == nil {
		o.OnGain = func(kube.ShardSet) {}
	}
	if o.now == nil {
		o.now = time.Now
	}
	return o, o.validate()
}

func (o Options) validate() error {
	name := o.Group + "-" + o.Identity
	switch {
	case o.Namespace == "" || o.Group == "":
		return errors.New("shards: Options.Namespace and Options.Group are required: they name the Leases of the group")
	case len(validation.IsDNS1123Subdomain(name)) > 0 || len(name) > maxName:
		return fmt.Errorf("shards: %q cannot be the name of a Lease: Options.Group and Options.Identity have lower-case letters, digits, - and ., %d together at most", name, maxName)
	case len(validation.IsValidLabelValue(o.Group)) > 0:
		return fmt.Errorf("shards: Options.Group %q cannot be a label: it must have 63 characters or fewer", o.Group)
	case o.Duration < minDuration || o.Duration%time.Second != 0:
		return fmt.Errorf("shards: Options.Duration is %v: a Lease counts in whole seconds", o.Duration)
	case o.Margin <= 0 || o.Margin > o.Duration*3/4:
		return fmt.Errorf("shards: Options.Margin is %v: it must be positive, and at most three quarters of Options.Duration, %v", o.Margin, o.Duration)
	}
	return nil
}

// renewEvery is how often the Lease is renewed.
func (o Options) renewEvery() time.Duration { return (o.Duration - o.Margin) / 3 }
