package ctrlcache

import (
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// standardSyncPeriod is the resync period if the options have none.
const standardSyncPeriod = 10 * time.Hour

// plan answers one question: which collections must be watched for a kind, and
// how. It is made once from the options and not changed.
//
// Why not defaulted options, as controller-runtime keeps them: there a kind's
// settings are the result of rewriting maps in a certain order. Here they are
// looked up in a chain of layers when the kind is first asked for, and the chain
// is one line.
type plan struct {
	opts   cache.Options
	byKind map[schema.GroupVersionKind]map[form]cache.ByObject
}

func newPlan(cfg *rest.Config, opts cache.Options) (*plan, error) {
	if err := complete(cfg, &opts); err != nil {
		return nil, err
	}
	// The maps are the caller's, who may change them later.
	opts.DefaultNamespaces = maps.Clone(opts.DefaultNamespaces)
	p := &plan{opts: opts, byKind: map[schema.GroupVersionKind]map[form]cache.ByObject{}}
	for object, own := range opts.ByObject {
		gvk, err := apiutil.GVKForObject(object, opts.Scheme)
		if err != nil {
			return nil, fmt.Errorf("cache.Options.ByObject: the kind of %T is not known: %w", object, err)
		}
		namespaced, err := apiutil.IsGVKNamespaced(gvk, opts.Mapper)
		if err != nil {
			return nil, fmt.Errorf("cache.Options.ByObject: whether %v is namespaced is not known: %w", gvk, err)
		}
		if !namespaced && own.Namespaces != nil {
			return nil, fmt.Errorf("cache.Options.ByObject: %v has no namespaces: leave Namespaces nil for it", gvk)
		}
		if p.byKind[gvk] == nil {
			p.byKind[gvk] = map[form]cache.ByObject{}
		}
		own.Namespaces = maps.Clone(own.Namespaces)
		p.byKind[gvk][formOf(object)] = own
	}
	return p, nil
}

// complete fills in what must not be missing.
func complete(cfg *rest.Config, opts *cache.Options) (err error) {
	if opts.HTTPClient == nil {
		if opts.HTTPClient, err = httpClient(cfg); err != nil {
			return err
		}
	}
	if opts.Scheme == nil {
		opts.Scheme = clientscheme.Scheme
	}
	if opts.Mapper == nil {
		if opts.Mapper, err = apiutil.NewDynamicRESTMapper(cfg, opts.HTTPClient); err != nil {
			return fmt.Errorf("no RESTMapper could be made from the config: %w", err)
		}
	}
	return nil
}

func httpClient(cfg *rest.Config) (*http.Client, error) {
	c, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("no HTTP client could be made from the config: %w", err)
	}
	return c, nil
}

// ownSettings returns what ByObject says about a kind: the entry for this form,
// else that for the fullest other form.
func (p *plan) ownSettings(k kind) cache.ByObject {
	entries := p.byKind[k.gvk]
	for _, f := range []form{k.form, typed, unstructuredForm, metadataOnly} {
		if own, ok := entries[f]; ok {
			return own
		}
	}
	return cache.ByObject{}
}

// namespaces are the settings of the namespaces that a kind is confined to if it has any
// namespaces; none for a kind that is watched in all of them.
func (p *plan) namespaces(k kind) map[string]cache.Config {
	if own := p.ownSettings(k).Namespaces; own != nil {
		return own
	}
	return p.opts.DefaultNamespaces
}

// extent says what is to be watched of a kind.
type extent struct {
	resource   schema.GroupVersionResource
	namespaced bool
	// configs has the settings of each namespace; those of [cache.AllNamespaces]
	// are for all that are not named.
	configs map[string]cache.Config
}

// extentOf finds a kind's resource and settings. The mapper's error is returned
// as it is: callers look for a NoMatch in it.
func (p *plan) extentOf(k kind) (*extent, error) {
	mapping, err := p.opts.Mapper.RESTMapping(k.gvk.GroupKind(), k.gvk.Version)
	if err != nil {
		return nil, err
	}
	e := &extent{resource: mapping.Resource, namespaced: mapping.Scope.Name() != meta.RESTScopeNameRoot}
	own, namespaces := p.ownSettings(k), p.namespaces(k)
	if !e.namespaced || len(namespaces) == 0 {
		e.configs = map[string]cache.Config{cache.AllNamespaces: layered(configOf(own), p.defaults())}
		return e, nil
	}
	e.configs = make(map[string]cache.Config, len(namespaces))
	for namespace, config := range namespaces {
		e.configs[namespace] = layered(config, configOf(own), p.opts.DefaultNamespaces[namespace], p.defaults())
	}
	if rest, ok := e.configs[cache.AllNamespaces]; ok {
		rest.FieldSelector = elsewhere(rest.FieldSelector, e.configs)
		e.configs[cache.AllNamespaces] = rest
	}
	return e, nil
}

// elsewhere restricts a selector to namespaces that have no settings of their
// own.
func elsewhere(selector fields.Selector, named map[string]cache.Config) fields.Selector {
	var all []fields.Selector
	for namespace := range named {
		if namespace != cache.AllNamespaces {
			all = append(all, fields.OneTermNotEqualSelector("metadata.namespace", namespace))
		}
	}
	slices.SortFunc(all, func(a, b fields.Selector) int { return strings.Compare(a.String(), b.String()) })
	if selector != nil {
		all = append(all, selector)
	}
	return fields.AndSelectors(all...)
}

func (p *plan) defaults() cache.Config {
	return cache.Config{
		LabelSelector:         p.opts.DefaultLabelSelector,
		FieldSelector:         p.opts.DefaultFieldSelector,
		Transform:             p.opts.DefaultTransform,
		UnsafeDisableDeepCopy: p.opts.DefaultUnsafeDisableDeepCopy,
		EnableWatchBookmarks:  p.opts.DefaultEnableWatchBookmarks,
		SyncPeriod:            p.opts.SyncPeriod,
	}
}

func configOf(b cache.ByObject) cache.Config {
	return cache.Config{
		LabelSelector:         b.Label,
		FieldSelector:         b.Field,
		Transform:             b.Transform,
		UnsafeDisableDeepCopy: b.UnsafeDisableDeepCopy,
		EnableWatchBookmarks:  b.EnableWatchBookmarks,
		SyncPeriod:            b.SyncPeriod,
	}
}

// layered takes each setting from the first layer that has it. Every field of a
// Config can be nil, which means unset; a test holds that.
func layered(layers ...cache.Config) (c cache.Config) {
	out := reflect.ValueOf(&c).Elem()
	for _, layer := range layers {
		from := reflect.ValueOf(layer)
		for i := range out.NumField() {
			if out.Field(i).IsNil() {
				out.Field(i).Set(from.Field(i))
			}
		}
	}
	return c
}

// home is the namespace under whose settings an object of this namespace is
// watched.
func (e *extent) home(namespace string) (string, bool) {
	if _, ok := e.configs[namespace]; ok && e.namespaced {
		return namespace, true
	}
	_, ok := e.configs[cache.AllNamespaces]
	return cache.AllNamespaces, ok
}
