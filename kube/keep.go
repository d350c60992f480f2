package kube

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/kube/wire"
	"github.com/tarnproject/tarn/memory"
)

// Store keeps the copy in another store than memory: open gets the origin of the copy,
// and returns the store.
func Store[T any](open func(of Origin) (tarn.ReadStore[T], error)) Option {
	return func(s *settings) { s.store = open }
}

// Sink writes the copy to a sink, such as a disk: open gets the origin of the copy, and
// returns the sink. There may be several.
func Sink[T any](open func(of Origin) (tarn.Sink[T], error)) Option {
	return func(s *settings) { s.sinks = append(s.sinks, open) }
}

// Origin describes what a copy is a copy of.
type Origin struct {
	// Resource of the objects. Until the resource is looked up by the kind, it is
	// the one that the naming rules give.
	Resource schema.GroupVersionResource
	Kind     schema.GroupVersionKind
	// Object is the objects' Go type.
	Object reflect.Type
	// Namespaces and selectors narrow the copy.
	Namespaces                   []string
	LabelSelector, FieldSelector string
	// Drop are the fields that are left out, Transformed says that objects are
	// changed before they are kept.
	Drop        []string
	Transformed bool
	// Transform is what changes them, on an object that shares nothing with others; nil if
	// it is not known. A history is rewritten with it.
	Transform func(object any) (any, error)
	// Cluster, if set, says that the copy is of several clusters: keys begin with the name
	// of one, see [InCluster], and each is a section of that name. It returns the client
	// of a cluster, nil for one that the copy does not have.
	Cluster func(name string) *Client
	// Part distinguishes the copy from others of the same resource beside it, where there
	// may be some: of other namespaces, or in another form. Empty if there are none.
	Part string

	client   *Client
	decoding SourceOptions
	sharding *Sharding
}

// Selection is which objects of the resource the copy has, and what of them.
func (o Origin) Selection() string {
	selection := fmt.Sprintf("namespaces %q labels %q fields %q without %q transformed %v", o.Namespaces, o.LabelSelector, o.FieldSelector, o.Drop, o.Transformed)
	if o.sharding != nil {
		selection += fmt.Sprintf(" shard %q", o.sharding.Wanted().Selector())
	}
	return selection
}

// Server distinguishes the server from others, as far as the config says: by its
// address and by its certificate authority. Several clusters have none in common.
func (o Origin) Server() string {
	if o.Cluster != nil {
		return "several clusters"
	}
	return o.client.server
}

// ServerUID asks for what distinguishes a cluster from every other one: the uid of
// its namespace kube-system. It is empty if that may not be read, or is not there;
// an error means that it is not known yet.
func (o Origin) ServerUID(ctx context.Context) (string, error) { return o.client.ServerUID(ctx) }

// Identity distinguishes a cluster from others as well as possible: it is [Origin.ServerUID], or,
// if that may not be read, "server " and [Origin.Server]. An error means that it is not known yet.
//
// Rights may change, so a uid and a server prove nothing about each other: see [OtherCluster].
func (o Origin) Identity(ctx context.Context) (string, error) {
	uid, err := o.ServerUID(ctx)
	if uid == "" && err == nil {
		return serverIdentity + o.Server(), nil
	}
	return uid, err
}

// serverIdentity begins an identity that is not a uid.
const serverIdentity = "server "

// OtherCluster compares two identities of [Origin.Identity], of different times. It reports
// whether they certainly are of different clusters, and which one to remember.
func OtherCluster(before, now string) (other bool, remember string) {
	had, has := strings.HasPrefix(before, serverIdentity), strings.HasPrefix(now, serverIdentity)
	switch {
	case before == "" || had && !has:
		return false, now
	case now == "" || has && !had:
		return false, before
	}
	return before != now, now
}

// Server is [Origin.Server].
func (c *Client) Server() string { return c.server }

// ServerUID is [Origin.ServerUID].
func (c *Client) ServerUID(ctx context.Context) (string, error) {
	raw, err := c.readJSON(ctx, "api", "v1", "namespaces", metav1.NamespaceSystem)
	switch {
	case err == nil:
		return uidOf(raw), nil
	case denied(err):
		return "", nil
	default:
		return "", classify(fmt.Errorf("the namespace %s cannot be read: %w", metav1.NamespaceSystem, err))
	}
}

// Decoder makes objects that share structure with those of the copy, if these do.
func (o Origin) Decoder() (*wire.Decoder, error) {
	decoding := wire.Options{Pool: o.client.pool, SharedMetadata: o.decoding.UnsafeSharedMetadata}
	if o.decoding.Unshared {
		decoding.Pool = nil
	}
	return wire.NewDecoder(o.Object, decoding)
}

// Mark gives an object that was read again the kind that those of the copy have:
// most have none, and protobuf does not write it.
func (o Origin) Mark(object any) {
	if o.decoding.SetKind {
		var stamp metav1.TypeMeta
		stamp.APIVersion, stamp.Kind = o.Kind.ToAPIVersionAndKind()
		mark(object, stamp)
	}
}

// denied says that a server has no answer to a question, for this client or at all,
// and will not have one if it is asked again.
func denied(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return false
	}
	switch code := answer.Status().Code; code {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	default:
		return code >= 400 && code < 500
	}
}

func uidOf(raw []byte) (uid string) {
	jsonFields(raw, func(name string, value []byte) {
		if name == "metadata" {
			jsonFields(value, func(name string, value []byte) {
				if name == "uid" {
					uid = jsonText(value)
				}
			})
		}
	})
	return uid
}

// openStore returns the store of a replica, and adds its sinks to the options.
func openStore[T any](s *settings, client *Client, collections []Collection, options *tarn.Options[T]) (tarn.ReadStore[T], error) {
	of := OriginOf(client, collections...)
	of.sharding = s.sharding
	if (len(s.sinks) > 0 || s.store != nil) && !s.sharding.keepable() {
		return nil, errKeptShard
	}
	of.Drop = slices.Sorted(slices.Values(s.drop))
	for _, name := range slices.Sorted(slices.Values(s.dropAnnotations)) {
		of.Drop = append(of.Drop, annotationPath(name))
	}
	of.Transformed = options.Transform != nil
	if transform := options.Transform; transform != nil {
		of.Transform = func(object any) (any, error) {
			typed, ok := object.(T)
			if !ok {
				return nil, fmt.Errorf("kube: a %T cannot be transformed: objects are %v", object, reflect.TypeFor[T]())
			}
			return transform(typed)
		}
	}
	for _, untyped := range s.sinks {
		open, ok := untyped.(func(Origin) (tarn.Sink[T], error))
		if !ok {
			return nil, fmt.Errorf("kube: %s: Sink has a %T, and the objects are %v", options.Name, untyped, reflect.TypeFor[T]())
		}
		sink, err := open(of)
		if err != nil {
			return nil, err
		}
		options.Sinks = append(options.Sinks, sink)
	}
	if s.store == nil {
		return memory.New[T](), nil
	}
	open, ok := s.store.(func(Origin) (tarn.ReadStore[T], error))
	if !ok {
		return nil, fmt.Errorf("kube: %s: Store has a %T, and the objects are %v", options.Name, s.store, reflect.TypeFor[T]())
	}
	return open(of)
}

// OriginOf returns the origin of a copy that is made without [Reflect]. Its
// collections differ in nothing but their namespace. The caller adds what is left
// out of objects.
func OriginOf(client *Client, collections ...Collection) Origin {
	first := collections[0]
	of := Origin{
		Resource: first.Resource, Kind: first.Kind, Object: first.Object,
		LabelSelector: first.LabelSelector, FieldSelector: first.FieldSelector, client: client,
	}
	if of.Resource.Empty() {
		of.Resource, _ = meta.UnsafeGuessKindToResource(of.Kind)
	}
	for _, c := range collections {
		if c.Namespace != "" {
			of.Namespaces = append(of.Namespaces, c.Namespace)
		}
	}
	return of
}

// serverOf reads from a config what distinguishes its server from others.
func serverOf(cfg *rest.Config) string {
	if group, ok := cfg.Transport.(*endpointGroup); ok {
		return group.server
	}
	ca := cfg.CAData
	if len(ca) == 0 && cfg.CAFile != "" {
		ca, _ = os.ReadFile(cfg.CAFile) // without it no request will succeed either
	}
	s := strings.TrimSuffix(cfg.Host, "/") + cfg.APIPath
	if len(ca) > 0 {
		s += fmt.Sprintf(" ca %x", sha256.Sum256(ca))
	}
	return s
}
