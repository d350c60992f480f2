package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/tarnproject/tarn/internal/usercall"
	"github.com/tarnproject/tarn/kube/wire"
)

// Client talks to one API server, on behalf of any number of sources. They share
// its connections, its rate limit, and the pool of equal parts of their objects.
//
// A request is made by client-go's REST client, up to the body of a good response.
// Only the body is read differently: see [Source].
type Client struct {
	rest *rest.RESTClient
	// own is the REST client of the program that has the settings of connections; nil if they
	// are fixed.
	own   *rest.RESTClient
	pool  *wire.Pool
	media mediaPolicy
	gzip  bool
	// ofRESTClient says that the client was made of an existing REST client ([ClientOf]), which
	// decides what formats it accepts and whether bodies are compressed.
	ofRESTClient bool
	// direct says that requests are those of the REST client itself, and not those of a typed
	// client that uses it.
	direct bool
	// server identifies the API server, as far as the config says.
	server string

	decoded decodeCounter
	shards  shardSupport

	mu sync.Mutex
	// jsonOnly are the resources for which the server refused everything but JSON.
	jsonOnly map[schema.GroupVersionResource]bool
}

// ClientOption changes how a [Client] is made.
type ClientOption func(*clientSettings)

type clientSettings struct {
	http   *http.Client
	pool   *wire.Pool
	direct bool
}

// WithHTTPClient makes a client use these connections. The transport settings of
// the config are then ignored.
func WithHTTPClient(client *http.Client) ClientOption {
	return func(s *clientSettings) { s.http = client }
}

// WithPool makes a client share structure with others that have the same pool.
func WithPool(pool *wire.Pool) ClientOption {
	return func(s *clientSettings) { s.pool = pool }
}

// NewClient returns a client for the server that cfg names. It respects all of the
// config, as client-go does.
func NewClient(cfg *rest.Config, opts ...ClientOption) (*Client, error) {
	if cfg == nil {
		return nil, errors.New("kube: the config is nil: take one from rest.InClusterConfig or clientcmd")
	}
	var s clientSettings
	for _, o := range opts {
		o(&s)
	}
	cfg = rest.CopyConfig(cfg)
	if cfg.UserAgent == "" {
		cfg.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	if s.http == nil {
		var err error
		if s.http, err = httpClientFor(cfg); err != nil {
			return nil, fmt.Errorf("kube: cannot connect to %s: %w", cfg.Host, err)
		}
	}
	if s.pool == nil {
		s.pool = wire.NewPool()
	}
	c := &Client{
		pool:     s.pool,
		media:    mediaPolicyOf(cfg),
		gzip:     !cfg.DisableCompression,
		server:   serverOf(cfg),
		jsonOnly: map[schema.GroupVersionResource]bool{},
	}
	// Each request sets its own path and types.
	cfg.GroupVersion, cfg.APIPath = &schema.GroupVersion{}, "/"
	cfg.NegotiatedSerializer = metainternal.Codecs.WithoutConversion()
	var err error
	if c.rest, err = rest.RESTClientForConfigAndClient(cfg, withHeaderRecorder(s.http)); err != nil {
		return nil, fmt.Errorf("kube: the config of %s is not usable: %w", cfg.Host, err)
	}
	return c, nil
}

// Pool is the pool of parts that the objects of this client share.
func (c *Client) Pool() *wire.Pool { return c.pool }

// request is a read of a collection.
type request struct {
	collection Collection
	options    metav1.ListOptions
	// protobuf says that the objects have a protobuf form.
	protobuf bool
	// filter drops objects of other shards; nil for none. Its selector is sent.
	filter *shardFilter
}

// response is an answer whose body is still to be read.
type response struct {
	body  io.ReadCloser
	media media
	// shard is the selector that was sent, and filter drops what it does not select.
	shard  string
	filter *shardFilter
}

// get reads a collection. If the server refuses the shard selector, this and later
// requests have none.
func (c *Client) get(ctx context.Context, r request) (*response, error) {
	gvr, selector := r.collection.Resource, r.filter.selector()
	if selector == "" || c.shards.of(gvr) == shardsRefused {
		return c.negotiate(ctx, r, "")
	}
	resp, err := c.negotiate(ctx, r, selector)
	if err != nil && refusesShards(err) {
		if resp, err := c.negotiate(ctx, r, ""); err == nil {
			c.shards.learn(gvr, shardsRefused)
			return resp, nil
		}
	}
	return resp, err
}

// negotiate makes a request. If the server refuses its media types, this and later
// requests are for JSON.
func (c *Client) negotiate(ctx context.Context, r request, shard string) (*response, error) {
	gvr := r.collection.Resource
	plain := c.isJSONOnly(gvr)
	resp, err := c.send(ctx, r, shard, plain)
	if err != nil && !plain && refusesMedia(err) && c.media.json {
		if resp, err := c.send(ctx, r, shard, true); err == nil {
			c.setJSONOnly(gvr)
			return resp, nil
		}
	}
	return resp, err
}

// send makes the request once. The reflector retries and backs off; hence no
// retries here.
func (c *Client) send(ctx context.Context, r request, shard string, plain bool) (*response, error) {
	recorded := &headers{}
	req := c.at(r.collection).
		SpecificallyVersionedParams(&r.options, metav1.ParameterCodec, schema.GroupVersion{Version: "v1"}).
		MaxRetries(0)
	c.accept(req, r, plain)
	if r.options.Watch {
		// client-go does not rate-limit watches either: each one follows a list.
		req.Throttle(nil)
	}
	if limit, ok := c.timeLimit(r); ok {
		req.Timeout(limit) // sent to the server too
		if !r.options.Watch {
			recorded.limit = limit
		}
	}
	if shard != "" {
		req.Param(shardParameter, shard)
	}
	body, err := usercall.Do(ctx, "transport", func() (io.ReadCloser, error) {
		return req.Stream(context.WithValue(ctx, headersKey{}, recorded))
	}, func(late io.ReadCloser) { closeBody(ctx, late) })
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx) // the transport may still write to recorded
	}
	if recorded.host != "" {
		c.shards.answered(recorded.host)
	}
	if err != nil {
		return nil, recorded.complete(err)
	}
	m, err := mediaOf(recorded.contentType)
	if err == nil && m == mediaProtobuf && !r.protobuf {
		err = errors.New("the answer is Kubernetes protobuf, but the request was for JSON and these objects have no protobuf form")
	}
	if err != nil {
		closeBody(ctx, body)
		return nil, err
	}
	return &response{body: body, media: m, shard: shard, filter: r.filter}, nil
}

// at begins a request for a collection.
func (c *Client) at(of Collection) *rest.Request {
	if c.direct {
		return c.requests().Get().Namespace(of.Namespace).Resource(of.Resource.Resource)
	}
	return c.requests().Get().AbsPath(of.path()...)
}

// timeLimit is how long client-go's own client would let the request take. Typed clients use it
// instead of the config's timeout, the metadata client does so for watches only, and the dynamic
// client never does.
func (c *Client) timeLimit(r request) (limit time.Duration, ok bool) {
	object := r.collection.Object
	if !c.ofRESTClient || c.direct || object == unstructuredType || object == metadataType && !r.options.Watch {
		return 0, false
	}
	return time.Duration(ptr.Deref(r.options.TimeoutSeconds, 0)) * time.Second, true
}

// accept sets the formats and encodings that the request accepts.
func (c *Client) accept(req *rest.Request, r request, plain bool) {
	switch {
	case c.direct && !plain:
		// The REST client names the formats of its config.
	case c.ofRESTClient && r.protobuf && !plain && r.collection.Object != metadataType:
		req.UseProtobufAsDefault() // as clientsets do
	default:
		req.SetHeader("Accept", c.media.accept(r, plain))
	}
	switch {
	case c.ofRESTClient:
		// net/http asks for gzip and decompresses, unless the transport forbids it.
	case c.gzip && !r.options.Watch:
		req.SetHeader("Accept-Encoding", "gzip")
	default:
		req.SetHeader("Accept-Encoding", "identity")
	}
}

// readJSON reads what is at a path, if it is no larger than an object may be.
func (c *Client) readJSON(ctx context.Context, path ...string) ([]byte, error) {
	body, err := c.requests().Get().AbsPath(path...).SetHeader("Accept", runtime.ContentTypeJSON).MaxRetries(0).Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	raw, err := io.ReadAll(io.LimitReader(body, DefaultMaxItem+1))
	if len(raw) > DefaultMaxItem {
		return nil, fmt.Errorf("the answer is too long, the limit is %d bytes: is this an API server?", DefaultMaxItem)
	}
	return raw, err
}

func (c *Client) isJSONOnly(gvr schema.GroupVersionResource) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.jsonOnly[gvr]
}

func (c *Client) setJSONOnly(gvr schema.GroupVersionResource) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.jsonOnly[gvr] = true
}
