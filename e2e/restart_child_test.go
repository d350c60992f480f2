package e2e

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/informers"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/sqlite"
	"github.com/tarnproject/tarn/sqlite/ondisk"
)

// childVariable makes this program a process with copies on disk instead of a test,
// so that it can be killed at any moment.
const childVariable = "TARN_E2E_CHILD"

// childInput is the input of such a process.
type childInput struct{ Kubeconfig, Dir string }

// report is the state of a copy. The process prints the reports of all copies, by
// name, for each line that it reads.
type report struct {
	Synced bool
	// Disk is the version that is on disk.
	Disk tarn.Version
	// Store and Handler are the objects, each with its state.
	Store, Handler map[string]string
	// Steps are the handler's calls for the scripted pods, Complaints the invalid ones.
	Steps      map[string][]string
	Complaints []string
	// Asked are the requests to the server, by kind, without repetitions in a row.
	Asked  []string
	Health string
}

// durableKinds are the ways to keep a copy on disk.
var durableKinds = map[string]func(context.Context, *rest.Config, *sqlite.DB) (live, error){
	"replica": func(ctx context.Context, config *rest.Config, db *sqlite.DB) (live, error) {
		r, err := kube.Reflect[*corev1.Pod](ctx, config, kube.Namespace(namespace), ondisk.In[*corev1.Pod](db, ondisk.Name("pods_of_replica")))
		return typed{r}, err
	},
	"informer": func(ctx context.Context, config *rest.Config, db *sqlite.DB) (live, error) {
		factory, err := informers.NewSharedInformerFactoryForConfig(config, 0,
			informers.WithNamespace(namespace), informers.WithDisk(ondisk.Keeper(db)))
		if err != nil {
			return nil, err
		}
		informer := factory.Core().V1().Pods().Informer()
		factory.StartWithContext(ctx)
		return informing{informer, nil}, nil
	},
}

// runChild keeps copies until the test ends it or kills it.
func runChild(told string, in io.Reader, out io.Writer) error {
	var l childInput
	if err := json.Unmarshal([]byte(told), &l); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", l.Kubeconfig)
	if err != nil {
		return err
	}
	db, err := sqlite.Open(l.Dir, sqlite.Options{})
	if err != nil {
		return err
	}
	copies := map[string]*durableCopy{}
	for name, start := range durableKinds {
		c := &durableCopy{mirror: newMirror(), open: make(chan struct{})}
		if c.live, err = start(context.Background(), c.recorded(config), db); err != nil {
			return err
		}
		if err := c.live.follow(c.mirror); err != nil {
			return err
		}
		close(c.open)
		copies[name] = c
	}
	reports := json.NewEncoder(out)
	for lines := bufio.NewScanner(in); lines.Scan(); {
		all := map[string]report{}
		for name, c := range copies {
			all[name] = c.report()
		}
		if err := reports.Encode(all); err != nil {
			return err
		}
	}
	return errors.New("the test has closed its end of the pipe")
}

// durableCopy is a copy that is kept on disk.
type durableCopy struct {
	live   live
	mirror *mirror
	// open is closed when requests may be sent. Otherwise the content from disk could
	// change before the handler is added.
	open chan struct{}

	mu    sync.Mutex
	asked []string
}

func (l *durableCopy) report() report {
	h := l.live.replica().Health()
	l.mu.Lock()
	defer l.mu.Unlock()
	return report{
		Synced: l.live.hasSynced(), Disk: h.Disk.Version, Health: h.String(),
		Store: states(l.live.contents()), Handler: states(l.mirror.objectsSeen()),
		Steps: l.mirror.allSteps(), Complaints: l.mirror.complaints(), Asked: append([]string(nil), l.asked...),
	}
}

// states are objects as they can be compared between processes, whole.
func states(objects map[string]metav1.Object) map[string]string {
	all := make(map[string]string, len(objects))
	for key, object := range objects {
		content, err := json.Marshal(withoutKind(object))
		if err != nil {
			content = []byte(err.Error())
		}
		all[key] = fmt.Sprintf("%s %x", describe(object), sha256.Sum256(content))
	}
	return all
}

func (l *durableCopy) recorded(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return durableRecorder{l, next} })
	return config
}

type durableRecorder struct {
	*durableCopy
	next http.RoundTripper
}

func (r durableRecorder) RoundTrip(request *http.Request) (*http.Response, error) {
	select {
	case <-r.open:
	case <-request.Context().Done():
		return nil, context.Cause(request.Context())
	}
	if what := kindOfRequest(request); what != "" {
		r.note(what)
	}
	return r.next.RoundTrip(request)
}

func (l *durableCopy) note(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.asked); n == 0 || l.asked[n-1] != what {
		l.asked = append(l.asked, what)
	}
}

// kindOfRequest is empty for what is not about objects: which resources there are.
func kindOfRequest(request *http.Request) string {
	query := request.URL.Query()
	switch {
	case strings.HasSuffix(request.URL.Path, "/namespaces/kube-system"):
		return "cluster"
	case !strings.HasSuffix(request.URL.Path, "/pods"):
		return ""
	case query.Get("sendInitialEvents") == "true":
		return "stream"
	case query.Get("watch") != "":
		return "watch"
	case query.Get("limit") == "1":
		return "probe"
	}
	return "list"
}
