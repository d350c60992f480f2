package protobuf

import (
	"hash/maphash"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn/kube/wire/internal/pool"
	"github.com/tarnproject/tarn/kube/wire/internal/shape"
)

// newPlan plans a type, with the options of single fields.
func newPlan(t reflect.Type, opts pool.Options) *plan {
	p := new(plan)
	p.root = p.newNode(nil, "", t)
	for _, path := range slices.Sorted(slices.Values(opts.Drop)) {
		p.root.dropPath(strings.Split(path, "."), opts.Pool)
	}
	p.root.markMetadata(!opts.SharedMetadata)
	return p
}

// dropPath marks a field to be skipped, and the nodes above it as different from
// others of their type. It says whether there is such a field on the wire.
func (n *node) dropPath(path []string, parts *pool.Pool) bool {
	if n.state.Load() == decodesItself {
		return false
	}
	for i := range n.fields {
		f := &n.fields[i]
		if f.kind == kindUnknown {
			continue
		}
		rest := path
		if f.name != "" {
			if f.name != path[0] {
				continue
			}
			rest = path[1:]
		}
		if len(rest) == 0 {
			n.diverge(path, parts)
			f.kind = kindUnknown // unknown fields are skipped
			return true
		}
		if f.message != nil && f.ownChild().dropPath(rest, parts) {
			n.diverge(path, parts)
			f.salt = pool.TypeSalt(f.typ) ^ formatSalt ^ f.child().dropping
			return true
		}
	}
	return false
}

// ownChild returns a field's node that no other field has: changes to it hold for
// this path only.
func (f *field) ownChild() *node {
	n := f.node.Load()
	if n == nil {
		n = f.parent.plan.newNode(f.parent, f.path(), f.message)
		f.node.Store(n)
	}
	return n
}

// diverge makes parts of the node differ from those of other decoders in the same
// pool that do not drop the same fields.
func (n *node) diverge(path []string, parts *pool.Pool) {
	n.dropping |= 1
	if parts != nil {
		n.dropping = n.dropping*31 + maphash.String(parts.Seed, strings.Join(path, ".")) | 1
	}
}

// markMetadata marks the special fields of an object's own metadata: the uid
// identifies objects, and fields that programs write to may have to be private.
func (n *node) markMetadata(private bool) {
	for i := range n.fields {
		f := &n.fields[i]
		if f.kind != kindMessage {
			continue
		}
		f.reusable = f.message != reflect.TypeFor[metav1.ObjectMeta]()
		f.stable = f.reusable && f.name != "status"
		if f.name == "metadata" && !f.reusable {
			meta := f.child()
			for j := range meta.fields {
				g := &meta.fields[j]
				if g.kind == kindUnknown {
					continue
				}
				switch g.name {
				case "name":
					g.identity = isName
				case "namespace":
					g.identity = isNamespace
				case "uid":
					g.identity = isUID
				}
				if g.private = private && slices.Contains(shape.PrivateMetadata, g.name); g.private {
					g.salt ^= privateSalt
				}
			}
		}
	}
}

// privateSalt names the text of a private map, which is no map.
const privateSalt = 0x7072697661746521
