package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// completionTimeout is how long a shell may wait for a server when the user
// presses Tab.
const completionTimeout = 2 * time.Second

const noFiles = cobra.ShellCompDirectiveNoFileComp

// completing gives a completion access to the cluster. It hides failures: nobody can read
// them in the middle of a command line.
func (a *app) completing(cmd *cobra.Command, complete func(ctx context.Context, cfg *rest.Config, namespace string) []string) []string {
	if a.applyEnvironment(cmd) != nil || a.startLogging() != nil {
		return nil
	}
	cfg, namespace, err := a.config()
	if err != nil {
		return nil
	}
	cfg.WarningHandler = rest.NoWarnings{}
	cfg.Timeout = completionTimeout
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	return complete(ctx, cfg, namespace)
}

// completeTargets completes the arguments that targets reads: resources, then names.
func (a *app) completeTargets(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	found := a.completing(cmd, func(ctx context.Context, cfg *rest.Config, namespace string) []string {
		catalog, err := mirror.Discover(ctx, cfg)
		if err != nil {
			return nil
		}
		if kind, _, ok := strings.Cut(typed, "/"); ok {
			return prefixed(kind+"/", objectNames(ctx, cfg, catalog, kind, namespace))
		}
		if len(args) > 0 && !strings.Contains(args[0], "/") {
			names := objectNames(ctx, cfg, catalog, args[0], namespace)
			return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(args[1:], name) })
		}
		return resourceNames(catalog, typed)
	})
	return matching(found, typed), noFiles
}

// completeResources completes resources only, any number of them.
func (a *app) completeResources(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	found := a.completing(cmd, func(ctx context.Context, cfg *rest.Config, _ string) []string {
		catalog, err := mirror.Discover(ctx, cfg)
		if err != nil {
			return nil
		}
		return slices.DeleteFunc(resourceNames(catalog, typed), func(name string) bool { return slices.Contains(args, name) })
	})
	return matching(found, typed), noFiles
}

// resourceNames completes the last name of a list with commas.
func resourceNames(catalog *mirror.Catalog, typed string) []string {
	var names []string
	for _, r := range catalog.All() {
		names = append(names, r.Name())
	}
	if comma := strings.LastIndex(typed, ","); comma >= 0 {
		return prefixed(typed[:comma+1], names)
	}
	return names
}

func objectNames(ctx context.Context, cfg *rest.Config, catalog *mirror.Catalog, kind, namespace string) []string {
	found, err := catalog.Find(kind)
	if err != nil {
		return nil
	}
	reader, err := newReader(cfg)
	if err != nil {
		return nil
	}
	table, err := reader.table(ctx, location{resource: found, namespace: namespace}, metav1.ListOptions{}, false)
	if err != nil {
		return nil
	}
	var names []string
	for _, row := range table.Rows {
		if object, ok := row.Object.Object.(metav1.Object); ok {
			names = append(names, object.GetName())
		}
	}
	return names
}

// completeNamespaces completes -n.
func (a *app) completeNamespaces(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	found := a.completing(cmd, func(ctx context.Context, cfg *rest.Config, _ string) []string {
		catalog, err := mirror.Discover(ctx, cfg)
		if err != nil {
			return nil
		}
		return objectNames(ctx, cfg, catalog, "namespaces", "")
	})
	return matching(found, typed), noFiles
}

// completeKubeconfig completes the flags that name something in the kubeconfig.
func (a *app) completeKubeconfig(section string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		if a.applyEnvironment(cmd) != nil {
			return nil, noFiles
		}
		config, err := a.connection.loader().RawConfig()
		if err != nil {
			return nil, noFiles
		}
		var names []string
		switch section {
		case "context":
			for name := range config.Contexts {
				names = append(names, name)
			}
		case "cluster":
			for name := range config.Clusters {
				names = append(names, name)
			}
		case "user":
			for name := range config.AuthInfos {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return matching(names, typed), noFiles
	}
}

// choices completes a fixed set of words. A word that ends with = needs a value after it.
func choices(words ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		found := matching(slices.Clone(words), typed)
		if len(found) == 1 && strings.HasSuffix(found[0], "=") {
			return found, noFiles | cobra.ShellCompDirectiveNoSpace
		}
		return found, noFiles
	}
}

func prefixed(prefix string, names []string) []string {
	for i, name := range names {
		names[i] = prefix + name
	}
	return names
}

func matching(names []string, typed string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, typed) })
}

// bindCompletions completes the flags that all commands take.
func (a *app) bindCompletions(root *cobra.Command) {
	for flag, complete := range map[string]cobra.CompletionFunc{
		"namespace":  a.completeNamespaces,
		"context":    a.completeKubeconfig("context"),
		"cluster":    a.completeKubeconfig("cluster"),
		"user":       a.completeKubeconfig("user"),
		"log-level":  choices("debug", "info", "warn", "error"),
		"log-format": choices("text", "json"),
	} {
		_ = root.RegisterFlagCompletionFunc(flag, complete)
	}
}
