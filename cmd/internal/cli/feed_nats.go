package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
	"github.com/tarnproject/tarn/jetstream"
	"github.com/tarnproject/tarn/jetstream/embedded"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/kube/columns"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// natsEngine feeds buckets of NATS JetStream, one for each resource.
type natsEngine struct {
	js      natsjs.JetStream
	server  *embedded.Server // nil if it is somewhere else
	address string
	bucket  jetstream.Bucket // Name is the prefix of names
	// claimed has the sinks that have a lease, by resource, and given the sinks that a mirror
	// received. The mirror closes those, unless it could not be started.
	claimed map[schema.GroupResource]*jetstream.Sink[mirror.Object]
	given   []*jetstream.Sink[mirror.Object]
	// known says that the server took this process once, and refused that it has refused it since.
	known, refused atomic.Bool
}

// natsHelp is the command's help about this engine.
const natsHelp = `nats://host:4222: each resource has a key-value bucket, CLUSTER_pods, that any
NATS client can read and watch; default.web is the key of pod web in namespace
default. Objects, deletes, gaps and the position are one atomic batch, or, if
they are too large for one, a chain that is marked incomplete until its end;
servers have batches since 2.12. With --history it is a stream instead, with
every state on the subject CLUSTER_pods.default.web, dropped after the time of
--history=24h. The address may end with ?history=N (states of an object that a
bucket keeps), replicas=N and creds=FILE. Just nats, without an address, starts
a server that keeps its streams in --nats-dir.`

var natsName = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

func openNATS(opts *feedOptions) (engine, error) {
	if !natsName.MatchString(opts.clusterName) {
		return nil, usagef("--cluster-name %s: names of buckets begin with it; use letters, digits, - and _", opts.clusterName)
	}
	e := &natsEngine{bucket: jetstream.Bucket{Name: opts.clusterName + "_", Events: opts.history, MaxAge: opts.historyAge}, claimed: map[schema.GroupResource]*jetstream.Sink[mirror.Object]{}}
	connect := []nats.Option{nats.Name("tarn feed"), nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true), nats.ReconnectWait(time.Second),
		// Credentials are replaced while a feeder runs, and accounts are locked for a while.
		nats.IgnoreAuthErrorAbort(), nats.ErrorHandler(e.failed), nats.ConnectHandler(e.taken), nats.ReconnectHandler(e.taken)}
	target := ""
	if opts.to == "nats" {
		var err error
		if e.server, err = startNATS(opts); err != nil {
			return nil, err
		}
		e.address = fmt.Sprintf("%s, which keeps its streams in %s", e.server.URL(), opts.natsDir)
		connect = append(connect, e.server.Option())
	} else {
		u, err := url.Parse(opts.to)
		if err != nil || u.Host == "" {
			return nil, usagef("--to %s: this is not the address of a NATS server; write nats://host:4222, or just nats", redacted(opts.to))
		}
		more, err := e.settings(u.Query())
		if err != nil {
			return nil, err
		}
		connect = append(connect, more...)
		u.RawQuery = ""
		target, e.address = u.String(), redacted(u.String())
	}
	nc, err := nats.Connect(target, connect...)
	if err == nil {
		if e.js, err = natsjs.New(nc); err == nil {
			return e, nil
		}
		nc.Close()
	}
	if e.server != nil {
		e.server.Stop()
	}
	return nil, usagef("--to %s: %v", redacted(opts.to), err)
}

// taken is called when the server has taken this process.
func (e *natsEngine) taken(*nats.Conn) {
	e.known.Store(true)
	e.refused.Store(false)
}

// failed is called with what happens to the connection. A refusal is repeated each second.
func (e *natsEngine) failed(_ *nats.Conn, _ *nats.Subscription, err error) {
	if isRefusal(err) && e.refused.Swap(true) {
		return
	}
	slog.Warn("NATS reports an error", "error", err)
}

// isRefusal reports whether a server refuses this process.
func isRefusal(err error) bool {
	return slices.ContainsFunc([]error{nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrAccountAuthExpired},
		func(kind error) bool { return errors.Is(err, kind) })
}

func startNATS(opts *feedOptions) (*embedded.Server, error) {
	if opts.natsDir == "" {
		return nil, usagef("--to nats starts a server: say with --nats-dir where it keeps its streams, or write the address of one, nats://host:4222")
	}
	return embedded.Start(embedded.Options{Dir: opts.natsDir, Listen: opts.natsListen})
}

// settings parses the query of the address.
func (e *natsEngine) settings(query url.Values) (options []nats.Option, err error) {
	for name := range query {
		value := query.Get(name)
		switch name {
		case "creds":
			options = append(options, nats.UserCredentials(value))
		case "history", "replicas":
			n, err := strconv.Atoi(value)
			if err != nil || n < 1 {
				return nil, usagef("--to: %s=%s: this is not a number", name, value)
			}
			if name == "history" {
				e.bucket.History = n
			} else {
				e.bucket.Replicas = n
			}
		default:
			return nil, usagef("--to: %s is not known; an address may end with history=N, replicas=N and creds=FILE", name)
		}
	}
	if e.bucket.Events && e.bucket.History > 0 {
		return nil, usagef("--to: history=N is for buckets; --history keeps every state")
	}
	return options, nil
}

func (e *natsEngine) name() string { return "jetstream" }

func (e *natsEngine) place() string { return e.address }

// claim gets the lease of all buckets, or of none: two processes that each had some would
// wait for each other for ever. It leaves out a bucket that another resource has, because their
// names are the same; its sink fails when it is opened. claim first gives up the leases of an
// earlier claim whose mirror was not started or has ended: otherwise this process would wait for
// itself.
func (e *natsEngine) claim(ctx context.Context, resources []mirror.Resource) error {
	e.release()
	var others []error
	for _, r := range resources {
		bucket := e.bucket
		bucket.Resource = r.GVR.GroupResource().String()
		bucket.Name += columns.TableName(r.GVR.GroupResource())
		sink, err := jetstream.New(e.js, bucket, jetstream.Objects[mirror.Object]())
		if err != nil {
			return usagef("--to: %v", err)
		}
		if err := sink.Claim(ctx); errors.Is(err, jetstream.ErrOtherResource) {
			others = append(others, err)
		} else if err != nil {
			sink.Close()
			e.release()
			return e.explain(err)
		}
		e.claimed[r.GVR.GroupResource()] = sink
	}
	if len(others) > 0 && len(others) == len(resources) {
		e.release()
		return e.explain(others[0])
	}
	return nil
}

// explain says whether a failed claim can be tried again.
func (e *natsEngine) explain(err error) error {
	nc := e.js.Conn()
	last := nc.LastError()
	switch {
	case errors.Is(err, jetstream.ErrFed):
		return errNotYet{err}
	case errors.Is(err, jetstream.ErrOtherResource):
		return fmt.Errorf("--to %s: %w; with another --cluster-name the bucket has another name", e.address, err)
	case !nc.IsConnected() && isRefusal(last) && e.known.Load():
		return errNotYet{fmt.Errorf("%s refuses this process, which it took before: %w", e.address, last)}
	case nc.IsClosed(), !nc.IsConnected() && isRefusal(last):
		return fmt.Errorf("--to %s: the server refuses: %w; check user, password and rights", e.address, cmp.Or(last, err))
	case !nc.IsConnected(), errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrNoResponders), errors.Is(err, nats.ErrTimeout):
		return errNotYet{fmt.Errorf("%s does not answer: %w", e.address, err)}
	}
	return fmt.Errorf("--to %s: %w", e.address, err)
}

func (e *natsEngine) release() {
	for resource, sink := range e.claimed {
		sink.Close()
		delete(e.claimed, resource)
	}
	for _, sink := range e.given {
		sink.Close()
	}
	e.given = nil
}

func (e *natsEngine) sink(of kube.Origin, _ []columns.Column) (tarn.Sink[mirror.Object], error) {
	sink, ok := e.claimed[of.Resource.GroupResource()]
	if !ok {
		return nil, fmt.Errorf("%s was not claimed", of.Resource.GroupResource())
	}
	sink.SetOrigin(of.Selection(), of.Identity)
	delete(e.claimed, of.Resource.GroupResource())
	e.given = append(e.given, sink)
	return sink, nil
}

func (e *natsEngine) close() {
	e.release()
	e.js.Conn().Close()
	if e.server != nil {
		e.server.Stop()
	}
}
