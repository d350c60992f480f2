package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// connection holds kubectl's flags that select a cluster.
//
// They are bound by client-go's clientcmd, on which kubectl's are built too, and not by the
// ConfigFlags of cli-runtime: that package adds kustomize and 90 more packages to the
// program, for no additional flag.
type connection struct {
	kubeconfig string
	overrides  clientcmd.ConfigOverrides
}

func (c *connection) bind(flags *pflag.FlagSet) {
	flags.StringVar(&c.kubeconfig, "kubeconfig", "", "path to the kubeconfig file (default $KUBECONFIG, then ~/.kube/config)")
	names := clientcmd.RecommendedConfigOverrideFlags("")
	names.ClusterOverrideFlags.APIServer.ShortName = "s"
	clientcmd.BindOverrideFlags(&c.overrides, flags, names)
	for name, usage := range map[string]string{
		"as":                       "user to act as",
		"as-group":                 "group to act as; may be repeated",
		"as-uid":                   "UID to act as",
		"certificate-authority":    "path to the certificates that vouch for the server",
		"client-certificate":       "path to a client certificate for TLS",
		"client-key":               "path to the client certificate's key",
		"cluster":                  "name of the kubeconfig cluster to use",
		"context":                  "name of the kubeconfig context to use",
		"disable-compression":      "do not let the server compress its answers",
		"insecure-skip-tls-verify": "believe any server certificate: the connection is not safe then",
		"namespace":                "namespace to look in (default the context's)",
		"password":                 "password for basic authentication",
		"proxy-url":                "proxy to go through",
		"request-timeout":          "how long a single request may take, such as 10s; 0 means as long as it takes. Watches are not cut off by it",
		"server":                   "address of the API server, such as https://10.0.0.1:6443",
		"tls-server-name":          "name that the server's certificate must have (default the server's host)",
		"token":                    "bearer token to show to the server",
		"user":                     "name of the kubeconfig user to use",
		"username":                 "user name for basic authentication",
	} {
		flags.Lookup(name).Usage = usage
	}
}

// config finds the cluster by kubectl's conventions, and the default namespace.
func (a *app) config() (*rest.Config, string, error) {
	cfg, namespace, err := a.load()
	if err != nil {
		return nil, "", err
	}
	if namespace != "" {
		if err := checkSegment("namespace", namespace); err != nil {
			return nil, "", err
		}
	}
	cfg = rest.CopyConfig(cfg)
	a.prepareConfig(cfg)
	return cfg, namespace, nil
}

// prepareConfig sets what the config of a cluster leaves open.
func (a *app) prepareConfig(cfg *rest.Config) {
	if cfg.UserAgent == "" {
		cfg.UserAgent = "tarn/" + buildVersion().Version
	}
	if cfg.QPS == 0 {
		// Discovery of a large cluster is some hundred requests, which client-go's
		// own limit of five a second would stretch to a minute. kubectl does the
		// same.
		cfg.QPS, cfg.Burst = 50, 300
	}
	cfg.WarningHandler = rest.NewWarningWriter(&a.logging.sink, rest.WarningWriterOptions{Deduplicate: true})
}

func (a *app) load() (*rest.Config, string, error) {
	if a.connect != nil {
		cfg, namespace, err := a.connect()
		if asked := a.connection.overrides.Context.Namespace; asked != "" {
			namespace = asked
		}
		return cfg, namespace, err
	}
	if timeout := a.connection.overrides.Timeout; timeout != "" {
		if _, err := clientcmd.ParseTimeout(timeout); err != nil {
			return nil, "", usagef("--request-timeout is a time such as 10s or 2m, not %q", timeout)
		}
	}
	loader := a.connection.loader()
	if err := a.checkContext(loader); err != nil {
		return nil, "", err
	}
	cfg, err := loader.ClientConfig()
	if err != nil {
		return nil, "", a.explainConfig(loader, err)
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, "", a.explainConfig(loader, err)
	}
	return cfg, namespace, nil
}

// checkContext detects a wrong --context first, since the errors that follow from it do not
// name the cause.
func (a *app) checkContext(loader clientcmd.ClientConfig) error {
	asked := a.connection.overrides.CurrentContext
	if asked == "" {
		return nil
	}
	config, err := loader.RawConfig()
	if err != nil {
		return a.explainConfig(loader, err)
	}
	if _, ok := config.Contexts[asked]; ok {
		return nil
	}
	return noContext(asked, slices.Sorted(maps.Keys(config.Contexts)))
}

// noContext lists the existing contexts if the requested one does not exist.
func noContext(asked string, names []string) error {
	if len(names) == 0 {
		return fmt.Errorf("there is no context %q, and no other in the kubeconfig; check --kubeconfig and KUBECONFIG", asked)
	}
	return fmt.Errorf("there is no context %q%s; the kubeconfig has %s", asked, didYouMean(near(asked, names)), strings.Join(names, ", "))
}

func (c *connection) loader() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &c.overrides)
}

// explainConfig says what to do about a kubeconfig that leads to no cluster.
func (a *app) explainConfig(loader clientcmd.ClientConfig, err error) error {
	switch {
	case clientcmd.IsEmptyConfig(err):
		return a.explainEmpty(loader)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the kubeconfig cannot be read: %w; check --kubeconfig and KUBECONFIG", err)
	default:
		return fmt.Errorf("the kubeconfig is of no use: %w; check --kubeconfig, --context, --cluster and --user", err)
	}
}

// explainEmpty says why there is no server address.
func (a *app) explainEmpty(loader clientcmd.ClientConfig) error {
	config, err := loader.RawConfig()
	current := cmp.Or(a.connection.overrides.CurrentContext, config.CurrentContext)
	switch {
	case err == nil && a.connection.kubeconfig != "" && len(config.Contexts) == 0 && len(config.Clusters) == 0:
		return fmt.Errorf("there is no cluster in the kubeconfig %s; name another one by --kubeconfig or KUBECONFIG, or an address by --server", a.connection.kubeconfig)
	case err != nil || len(config.Contexts) == 0 && len(config.Clusters) == 0:
		return fmt.Errorf("no cluster is configured: there is no kubeconfig; name one by --kubeconfig or KUBECONFIG, or an address by --server, or run %q, which needs no cluster", a.program+" demo")
	case current == "":
		return fmt.Errorf("the kubeconfig has no current context; choose one with --context: %s", strings.Join(slices.Sorted(maps.Keys(config.Contexts)), ", "))
	}
	cluster := a.connection.overrides.Context.Cluster
	if found := config.Contexts[current]; found != nil {
		cluster = cmp.Or(cluster, found.Cluster)
	}
	return fmt.Errorf("the context %q names the cluster %q, for which the kubeconfig has no server; correct it, or give the address by --server", current, cluster)
}
