package informers

import (
	"k8s.io/client-go/informers/admissionregistration"
	"k8s.io/client-go/informers/apiserverinternal"
	"k8s.io/client-go/informers/apps"
	"k8s.io/client-go/informers/autoscaling"
	"k8s.io/client-go/informers/batch"
	"k8s.io/client-go/informers/certificates"
	"k8s.io/client-go/informers/coordination"
	"k8s.io/client-go/informers/core"
	"k8s.io/client-go/informers/discovery"
	"k8s.io/client-go/informers/events"
	"k8s.io/client-go/informers/extensions"
	"k8s.io/client-go/informers/flowcontrol"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/informers/networking"
	"k8s.io/client-go/informers/node"
	"k8s.io/client-go/informers/policy"
	"k8s.io/client-go/informers/rbac"
	"k8s.io/client-go/informers/resource"
	"k8s.io/client-go/informers/scheduling"
	"k8s.io/client-go/informers/storage"
	"k8s.io/client-go/informers/storagemigration"
)

// group is the constructor that every API group of client-go has.
type group[G any] func(internalinterfaces.SharedInformerFactory, string, internalinterfaces.TweakListOptionsFunc) G

// through opens a group of client-go's on ours.
func through[G any](f *factory, open group[G]) G { return open(ours{f}, f.namespace, f.tweak) }

func (f *factory) Admissionregistration() admissionregistration.Interface {
	return through(f, admissionregistration.New)
}
func (f *factory) Internal() apiserverinternal.Interface { return through(f, apiserverinternal.New) }
func (f *factory) Apps() apps.Interface                  { return through(f, apps.New) }
func (f *factory) Autoscaling() autoscaling.Interface    { return through(f, autoscaling.New) }
func (f *factory) Batch() batch.Interface                { return through(f, batch.New) }
func (f *factory) Certificates() certificates.Interface  { return through(f, certificates.New) }
func (f *factory) Coordination() coordination.Interface  { return through(f, coordination.New) }
func (f *factory) Core() core.Interface                  { return through(f, core.New) }
func (f *factory) Discovery() discovery.Interface        { return through(f, discovery.New) }
func (f *factory) Events() events.Interface              { return through(f, events.New) }
func (f *factory) Extensions() extensions.Interface      { return through(f, extensions.New) }
func (f *factory) Flowcontrol() flowcontrol.Interface    { return through(f, flowcontrol.New) }
func (f *factory) Networking() networking.Interface      { return through(f, networking.New) }
func (f *factory) Node() node.Interface                  { return through(f, node.New) }
func (f *factory) Policy() policy.Interface              { return through(f, policy.New) }
func (f *factory) Rbac() rbac.Interface                  { return through(f, rbac.New) }
func (f *factory) Resource() resource.Interface          { return through(f, resource.New) }
func (f *factory) Scheduling() scheduling.Interface      { return through(f, scheduling.New) }
func (f *factory) Storage() storage.Interface            { return through(f, storage.New) }
func (f *factory) Storagemigration() storagemigration.Interface {
	return through(f, storagemigration.New)
}
