package relay

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Client is a program that has watches of a resource open: its user, and its name for
// itself.
type Client struct {
	Resource schema.GroupVersionResource
	// Caller is the user. Agent is the first word of the User-Agent header, without its
	// version.
	Caller, Agent string
	// Watches are open now; the first of them was opened at Since. SentBytes were sent
	// since then.
	Watches   int
	Since     time.Time
	SentBytes int64
}

// clients counts open watches by client. It is locked when a watch opens and closes, and
// not while it sends.
type clients struct {
	mu sync.Mutex
	by map[clientKey]*clientUse
}

type clientKey struct {
	resource      schema.GroupVersionResource
	caller, agent string
}

type clientUse struct {
	watches int
	since   time.Time
	sent    atomic.Int64
}

// enter counts a watch until leave is called. What it sends is added to sent.
func (c *clients) enter(resource schema.GroupVersionResource, caller string, req *http.Request) (sent *atomic.Int64, leave func()) {
	key := clientKey{resource, caller, agentOf(req.UserAgent())}
	c.mu.Lock()
	defer c.mu.Unlock()
	use := c.by[key]
	if use == nil {
		if c.by == nil {
			c.by = map[clientKey]*clientUse{}
		}
		use = &clientUse{since: time.Now()}
		c.by[key] = use
	}
	use.watches++
	return &use.sent, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if use.watches--; use.watches == 0 {
			delete(c.by, key)
		}
	}
}

func (c *clients) list() []Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []Client
	for key, use := range c.by {
		all = append(all, Client{
			Resource: key.resource, Caller: key.caller, Agent: key.agent,
			Watches: use.watches, Since: use.since, SentBytes: use.sent.Load(),
		})
	}
	slices.SortFunc(all, func(a, b Client) int {
		return cmp.Or(cmp.Compare(b.Watches, a.Watches), cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Caller, b.Caller),
			cmp.Compare(a.Resource.String(), b.Resource.String()))
	})
	return all
}

// longestAgent bounds the name that a client gives itself.
const longestAgent = 64

func agentOf(header string) string {
	agent, _, _ := strings.Cut(header, "/")
	agent, _, _ = strings.Cut(agent, " ")
	agent = strings.ToValidUTF8(agent[:min(len(agent), longestAgent)], "")
	return cmp.Or(agent, "unknown")
}
