package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/tarnproject/tarn/kube/wire"
)

// Client talks to one API server, on behalf of any number of sources. They share
// its connections, its rate limit, and the pool in which equal parts of their
// objects are found again.
//
// It is client-go's REST client for all that concerns a request, up to the body
// of a good response. Only the body is read otherwise: see [Source].
type Client struct {
	rest  *rest.RESTClient
	pool  *wire.Pool
	media mediaPolicy
	gzip  bool
	// server tells it from another, as far as the config says.
	server string

	decoded decodeCounter

	mu sync.Mutex
	// plain are the resources of which the server refused all but JSON.
	plain map[schema.GroupVersionResource]bool
}

// ClientOption changes how a [Client] is made.
type ClientOption func(*clientSettings)

type clientSettings struct {
	http *http.Client
	pool *wire.Pool
}

// WithHTTPClient makes a client use these connections; of the config, what
// concerns transport is then not looked at.
func WithHTTPClient(client *http.Client) ClientOption {
	return func(s *clientSettings) { s.http = client }
}

// WithPool makes a client share structure with others that have the same pool.
func WithPool(pool *wire.Pool) ClientOption {
	return func(s *clientSettings) { s.pool = pool }
}

// NewClient returns a client for the server that cfg names. All of the config is
// respected, as client-go does.
func NewClient(cfg *rest.Config, opts ...ClientOption) (*Client, error) {
	if cfg == nil {
		return nil, errors.New("kube: the config is nil: get one from rest.InClusterConfig or clientcmd")
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
			return nil, fmt.Errorf("kube: no connection can be made to %s: %w", cfg.Host, err)
		}
	}
	if s.pool == nil {
		s.pool = wire.NewPool()
	}
	c := &Client{
		pool:   s.pool,
		media:  mediaPolicyOf(cfg),
		gzip:   !cfg.DisableCompression,
		server: serverOf(cfg),
		plain:  map[schema.GroupVersionResource]bool{},
	}
	// The REST client is told the path and the types of each request.
	cfg.GroupVersion, cfg.APIPath = &schema.GroupVersion{}, "/"
	cfg.NegotiatedSerializer = metainternal.Codecs.WithoutConversion()
	var err error
	if c.rest, err = rest.RESTClientForConfigAndClient(cfg, tapped(s.http)); err != nil {
		return nil, fmt.Errorf("kube: the config of %s is not usable: %w", cfg.Host, err)
	}
	return c, nil
}

// Pool is where the objects of this client share structure.
func (c *Client) Pool() *wire.Pool { return c.pool }

// request is a read of a collection.
type request struct {
	collection Collection
	options    metav1.ListOptions
	// protobuf says that the objects have a protobuf form.
	protobuf bool
}

// response is an answer whose body is still to be read.
type response struct {
	body  io.ReadCloser
	media media
}

// get asks for a collection. A server that refuses the media types asked for is
// asked for JSON from then on.
func (c *Client) get(ctx context.Context, r request) (*response, error) {
	gvr := r.collection.Resource
	plain := c.isPlain(gvr)
	resp, err := c.send(ctx, r, plain)
	if err != nil && !plain && refusesMedia(err) && c.media.json {
		if resp, err := c.send(ctx, r, true); err == nil {
			c.setPlain(gvr)
			return resp, nil
		}
	}
	return resp, err
}

// send makes the request once. Tries in a row, and the waits between, are the
// reflector's business; hence no retries here.
func (c *Client) send(ctx context.Context, r request, plain bool) (*response, error) {
	tap := &tap{}
	req := c.rest.Get().
		AbsPath(r.collection.path()...).
		SpecificallyVersionedParams(&r.options, metav1.ParameterCodec, schema.GroupVersion{Version: "v1"}).
		SetHeader("Accept", c.media.accept(r, plain)).
		SetHeader("Accept-Encoding", "identity").
		MaxRetries(0)
	switch {
	case r.options.Watch:
		// client-go does not slow watches down either: each is a list's successor.
		req.Throttle(flowcontrol.NewFakeAlwaysRateLimiter())
	case c.gzip:
		req.SetHeader("Accept-Encoding", "gzip")
	}
	body, err := req.Stream(context.WithValue(ctx, tapKey{}, tap))
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, tap.complete(err)
	}
	m, err := mediaOf(tap.contentType)
	if err == nil && m == mediaProtobuf && !r.protobuf {
		err = errors.New("the answer is Kubernetes protobuf, which was not asked for and these objects have no form in")
	}
	if err != nil {
		body.Close()
		return nil, err
	}
	return &response{body: body, media: m}, nil
}

func (c *Client) isPlain(gvr schema.GroupVersionResource) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.plain[gvr]
}

func (c *Client) setPlain(gvr schema.GroupVersionResource) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.plain[gvr] = true
}
