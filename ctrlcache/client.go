package ctrlcache

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// NewClient is a [client.NewClientFunc] for ctrl.Options.NewClient. It is
// [client.New], except that with client.CacheOptions.EnableReadYourWritesConsistency
// and a cache of [NewCache] reads wait for what the client has written:
//
//   - by version and in the object's own namespace, so that a quiet namespace
//     delays nobody;
//   - in every form: an update of a typed object is waited for by a read of the
//     metadata;
//   - for deletions too: of objects that the cache has never seen, by removal of the
//     last finalizer, and by DeleteAllOf, which controller-runtime's client refuses;
//   - only reads that the cache answers wait, and only copies that exist are
//     waited for: writing does not start an informer;
//   - after a server was restored from a backup, reads show what is left of earlier
//     writes, and do not wait for their versions.
//
// The metric of controller-runtime's client for these waits,
// controller_runtime_client_consistency_wait_duration_seconds, has those of this client too.
//
// With NewCache alone controller-runtime's own client keeps its promise too, in several
// namespaces as well. But it does not report the namespace of a write, so the copies of
// all namespaces must reach the version of the write; quiet ones are compared with the
// server meanwhile, by a list of metadata. After it deletes an object that the cache
// never saw, its reads wait without a result.
func NewClient(cfg *rest.Config, options client.Options) (client.Client, error) {
	if cfg == nil || options.Cache == nil || !ptr.Deref(options.Cache.EnableReadYourWritesConsistency, false) {
		return client.New(cfg, options)
	}
	cache, ok := options.Cache.Reader.(*ctrlCache)
	if !ok {
		return client.New(cfg, options)
	}
	cfg = clientConfig(cfg)
	if options.HTTPClient == nil {
		made, err := httpClient(cfg)
		if err != nil {
			return nil, err
		}
		options.HTTPClient = made
	}
	plain := *options.Cache
	plain.EnableReadYourWritesConsistency = nil
	options.Cache = &plain
	inner, err := client.New(cfg, options)
	if err != nil {
		return nil, err
	}
	options.Cache, options.Scheme, options.Mapper = nil, inner.Scheme(), inner.RESTMapper()
	live, err := client.New(cfg, options)
	if err != nil {
		return nil, err
	}
	w := &marking{cache: cache, cfg: cfg, options: options, live: live}
	return &ownClient{Client: inner, marking: w}, nil
}

var _ client.NewClientFunc = NewClient

// clientConfig is a copy of a config with the defaults of [client.New]. The HTTP client
// that all requests share, and the client that deletes, need them too.
func clientConfig(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	if cfg.UserAgent == "" {
		cfg.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	if cfg.WarningHandler == nil && cfg.WarningHandlerWithContext == nil {
		cfg.WarningHandlerWithContext = ctrllog.NewKubeAPIWarningLogger(ctrllog.KubeAPIWarningLoggerOptions{})
	}
	return cfg
}

// ownClient is a client whose writes are marked in the cache; its reads are the
// cache's, which waits for the marks.
type ownClient struct {
	client.Client
	*marking
}

func (c *ownClient) Create(ctx context.Context, object client.Object, opts ...client.CreateOption) error {
	write := func() error { return c.Client.Create(ctx, object, opts...) }
	chosen := (&client.CreateOptions{}).ApplyOptions(opts)
	if c.unmarked(chosen.DisableReadYourWritesConsistency, chosen.DryRun) {
		return write()
	}
	return c.object(object, object, true, write)
}

func (c *ownClient) Update(ctx context.Context, object client.Object, opts ...client.UpdateOption) error {
	write := func() error { return c.Client.Update(ctx, object, opts...) }
	chosen := (&client.UpdateOptions{}).ApplyOptions(opts)
	if c.unmarked(chosen.DisableReadYourWritesConsistency, chosen.DryRun) {
		return write()
	}
	return c.object(object, object, true, write)
}

func (c *ownClient) Patch(ctx context.Context, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
	write := func() error { return c.Client.Patch(ctx, object, patch, opts...) }
	chosen := (&client.PatchOptions{}).ApplyOptions(opts)
	if c.unmarked(chosen.DisableReadYourWritesConsistency, chosen.DryRun) {
		return write()
	}
	return c.object(object, object, true, write)
}

func (c *ownClient) Apply(ctx context.Context, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	write := func() error { return c.Client.Apply(ctx, config, opts...) }
	chosen := (&client.ApplyOptions{}).ApplyOptions(opts)
	if c.unmarked(chosen.DisableReadYourWritesConsistency, chosen.DryRun) {
		return write()
	}
	return c.configuration(config, config, true, write)
}

func (c *ownClient) Status() client.SubResourceWriter { return c.SubResource("status") }

func (c *ownClient) SubResource(name string) client.SubResourceClient {
	return &ownSubResource{SubResourceClient: c.Client.SubResource(name), marking: c.marking, name: name}
}

// ownSubResource marks the writes of a subresource. What it creates, a token or an
// eviction, is not a state of the object.
type ownSubResource struct {
	client.SubResourceClient
	*marking
	name string
}

func (c *ownSubResource) Update(ctx context.Context, object client.Object, opts ...client.SubResourceUpdateOption) error {
	write := func() error { return c.SubResourceClient.Update(ctx, object, opts...) }
	chosen := (&client.SubResourceUpdateOptions{}).ApplyOptions(opts)
	if c.unmarked(chosen.DisableReadYourWritesConsistency, chosen.DryRun) {
		return write()
	}
	answer, whole := c.answerOf(object, chosen.SubResourceBody)
	return c.object(object, answer, whole, write)
}

func (c *ownSubResource) Patch(ctx context.Context, object client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	write := func() error { return c.SubResourceClient.Patch(ctx, object, patch, opts...) }
	chosen := (&client.SubResourcePatchOptions{}).ApplyOptions(opts)
	if c.unmarked(chosen.DisableReadYourWritesConsistency, chosen.DryRun) {
		return write()
	}
	answer, whole := c.answerOf(object, chosen.SubResourceBody)
	return c.object(object, answer, whole, write)
}

func (c *ownSubResource) Apply(ctx context.Context, config runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	write := func() error { return c.SubResourceClient.Apply(ctx, config, opts...) }
	chosen := (&client.SubResourceApplyOptions{}).ApplyOpts(opts)
	if c.unmarked(chosen.DisableReadYourWritesConsistency, chosen.DryRun) {
		return write()
	}
	if chosen.SubResourceBody != nil {
		return c.configuration(config, chosen.SubResourceBody, false, write)
	}
	return c.configuration(config, config, c.name == "status", write)
}

// answerOf is where the answer of a write of a subresource goes, and with it the version of the
// object: what is called a scale has that of its deployment. whole says that the answer is the
// object, with its labels and fields.
func (c *ownSubResource) answerOf(object, body client.Object) (answer client.Object, whole bool) {
	as := formOf(object)
	if body != nil && as != metadataOnly { // a patch of metadata leaves the body as it is
		return body, false
	}
	// A typed object cannot be another one. Neither can a status.
	return object, as == typed || c.name == "status"
}

// marking records writes for the cache.
type marking struct {
	cache   *ctrlCache
	cfg     *rest.Config
	options client.Options
	live    client.Client
	// deleters has a rest.Interface for each GroupVersionKind: one for each, as
	// controller-runtime's client has, so that their rate limits hold.
	deleters sync.Map
}

// unmarked says that reads need not wait for a write: the caller chose that, or it is a dry run.
func (w *marking) unmarked(disabled bool, dryRun []string) bool {
	return disabled || len(dryRun) > 0 || ptr.Deref(w.options.DryRun, false)
}

// keyOf is the key under which copies have an object. Objects without namespaces may come
// with one, which requests leave out.
func (w *marking) keyOf(gvk schema.GroupVersionKind, object client.Object) client.ObjectKey {
	key := client.ObjectKeyFromObject(object)
	if namespaced, err := apiutil.IsGVKNamespaced(gvk, w.options.Mapper); err == nil && !namespaced {
		key.Namespace = ""
	}
	return key
}

// object makes a write of an object; answer is what the server's answer is decoded
// into, and whole says that it is then the object, with all that it has on the server.
func (w *marking) object(object, answer client.Object, whole bool, write func() error) error {
	gvk, err := apiutil.GVKForObject(object, w.options.Scheme)
	if err != nil {
		return err
	}
	f := w.cache.writes.begin(gvk, w.keyOf(gvk, object))
	marks := map[client.ObjectKey]mark{}
	defer func() { w.cache.finishWrite(gvk, marks, f) }()
	if err := write(); err != nil {
		return err
	}
	m := afterWrite(answer)
	if whole {
		// The caller keeps the object, and may write to its labels.
		m.labels, m.known, m.answer = maps.Clone(answer.GetLabels()), true, answer
	}
	marks[w.keyOf(gvk, object)] = m // with the name that was generated
	return nil
}

// configuration is object for an apply configuration, whose object is known only
// from its JSON.
func (w *marking) configuration(config, answer runtime.ApplyConfiguration, whole bool, write func() error) error {
	sent, err := contentOf(config)
	if err != nil {
		return err
	}
	gvk := sent.GroupVersionKind()
	key := w.keyOf(gvk, sent)
	f := w.cache.writes.begin(gvk, key)
	marks := map[client.ObjectKey]mark{}
	defer func() { w.cache.finishWrite(gvk, marks, f) }()
	if err := write(); err != nil {
		return err
	}
	told, err := contentOf(answer)
	if err != nil {
		return err
	}
	m := afterWrite(told)
	if whole {
		m.labels, m.known, m.answer = told.GetLabels(), true, told
		if _, replaced := config.(runtime.Unstructured); !replaced {
			m.known = len(sent.GetLabels()) == 0
			remove(told.Object, sent.Object)
		}
	}
	marks[key] = m
	return nil
}

// remove leaves out what was sent. The answer is decoded over a typed configuration, which
// keeps what it had and the answer has not, such as a status that the server ignores.
func remove(content, sent map[string]any) {
	for name, value := range sent {
		inner, ok := value.(map[string]any)
		if have, isMap := content[name].(map[string]any); ok && isMap {
			remove(have, inner)
		} else {
			delete(content, name)
		}
	}
}

func contentOf(config runtime.ApplyConfiguration) (*unstructured.Unstructured, error) {
	content := &unstructured.Unstructured{}
	raw, err := json.Marshal(config)
	if err == nil {
		err = json.Unmarshal(raw, &content.Object)
	}
	if err != nil {
		return nil, fmt.Errorf("what a %T applies to is not known: %w", config, err)
	}
	return content, nil
}
