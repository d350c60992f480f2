package shards

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn/kube"
)

// A Member is one process of a group. See the package for what it promises.
//
//   - Sharding is for the copies of the process. Start them before Run, or soon after.
//   - Begin, Owns and Health may be called at any time, by any goroutine.
type Member struct {
	cfg      *rest.Config
	opts     Options
	leases   coordination.LeaseInterface
	sharding *kube.Sharding
	work     ownership
	started  atomic.Bool
	// wake makes the loop look again.
	wake chan struct{}
	// leaving is set by Leave; left is closed when nothing is owned any more.
	leaving  atomic.Bool
	left     chan struct{}
	leftOnce sync.Once

	mu     sync.Mutex
	health Health

	// group is what the loop knows. Nobody else uses it.
	group groupView
}

// Health is the state of a member at one moment.
type Health struct {
	// Identity is the name of the member since it last joined.
	Identity string
	// Members counts those of the group, this one included.
	Members int
	// Owned has the objects that the process may work on, and Held those that its copies
	// have or read.
	Owned, Held kube.ShardSet
	// ValidUntil is when the work must end unless the Lease is renewed.
	ValidUntil time.Time
	// Gained and Lost count slots, Fenced how often other members declared this one dead.
	Gained, Lost, Fenced int64
	// Err is the last failure; nil after a success.
	Err error
}

// New returns a member of a group. It does not join before Run.
func New(cfg *rest.Config, opts Options) (*Member, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	if cfg == nil {
		return nil, errors.New("shards: the config is nil: take one from rest.InClusterConfig or clientcmd")
	}
	client, err := coordination.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("shards: %w", err)
	}
	none, err := kube.NewShardSet(opts.Key)
	if err != nil {
		return nil, err
	}
	m := &Member{
		cfg: cfg, opts: opts, leases: client.Leases(opts.Namespace), sharding: kube.NewSharding(none),
		wake: make(chan struct{}, 1), left: make(chan struct{}),
	}
	m.work.now, m.work.idle = opts.now, m.lookAgain
	m.group = groupView{identity: newIdentity(opts.Identity), seen: map[string]seenLease{}}
	m.health.Owned, m.health.Held = none, none
	return m, nil
}

// Sharding is for creating the copies of the process. It has no objects until the member
// owns some.
func (m *Member) Sharding() *kube.Sharding { return m.sharding }

// Begin reports whether the process may work on an object now. If so, call done when the
// work is over: the object is not handed to another process before that, as long as the
// Lease can be renewed.
func (m *Member) Begin(object metav1.Object) (done func(), ok bool) {
	slot := m.slotOf(object)
	if !m.work.begin(slot) {
		return func() {}, false
	}
	return sync.OnceFunc(func() { m.work.end(slot) }), true
}

// Owns reports whether the process may work on an object at this moment. Unlike Begin it
// does not keep the object from being handed over.
func (m *Member) Owns(object metav1.Object) bool { return m.work.owns(m.slotOf(object)) }

func (m *Member) slotOf(object metav1.Object) int {
	return slotOf(m.opts.Key.Hash(object.GetNamespace(), string(object.GetUID())))
}

// Health returns the state of the member.
func (m *Member) Health() Health {
	m.mu.Lock()
	h := m.health
	m.mu.Unlock()
	h.ValidUntil = m.work.until()
	h.Owned = setOf(m.opts.Key, m.work.owns)
	h.Held = m.sharding.Wanted()
	return h
}

func (m *Member) note(change func(h *Health)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(&m.health)
}

// failed reports a failure, and returns it as it was reported.
func (m *Member) failed(ctx context.Context, doing string, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	err = fmt.Errorf("shards: %s of %s in group %s: %w", doing, m.group.identity, m.opts.Group, err)
	m.note(func(h *Health) { h.Err = err })
	m.opts.OnError(ctx, err)
	return err
}

// Leave hands everything over to the other members, and returns when they have it, or ctx
// ends. End the context of Run afterwards. The last member has nobody to hand over to.
func (m *Member) Leave(ctx context.Context) error {
	m.leaving.Store(true)
	m.lookAgain()
	select {
	case <-m.left:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("shards: %s of group %s still owns %s: %w", m.opts.Identity, m.opts.Group, m.Health().Owned, context.Cause(ctx))
	}
}

func (m *Member) lookAgain() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// newIdentity is unique for each time that a process joins.
func newIdentity(name string) string { return name + "-" + strings.ToLower(rand.Text()[:10]) }
