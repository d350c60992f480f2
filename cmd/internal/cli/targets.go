package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/client-go/rest"
)

// catalogOf reads a server's resources. It logs what it could not read.
func (a *app) catalogOf(ctx context.Context, cfg *rest.Config) (*mirror.Catalog, error) {
	catalog, err := mirror.Discover(ctx, cfg)
	if err != nil {
		return nil, err
	}
	for _, warning := range catalog.Warnings() {
		a.logger.Warn("discovery is not complete", "error", warning)
	}
	return catalog, nil
}

// target is one resource that a command line names, and the names of its objects; no names
// mean all.
type target struct {
	resource mirror.Resource
	names    []string
}

// someResources is for commands that need a list of resources.
func (a *app) someResources(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usagef("say which resources: %q (%q shows more)", cmd.CommandPath()+" pods,deployments", cmd.CommandPath()+" --help")
	}
	return nil
}

// A finder returns the resources that a name means.
type finder func(name string) ([]mirror.Resource, error)

// targets parses arguments as kubectl does: "pods,services", "pods web-1 web-2", "pods/web-1
// services/web".
func targets(find finder, args []string) ([]target, error) {
	wanted, err := readTargets(find, args)
	for _, t := range wanted {
		for _, name := range t.names {
			if err := checkSegment("name", name); err != nil {
				return nil, err
			}
		}
	}
	return wanted, err
}

func readTargets(find finder, args []string) ([]target, error) {
	if slices.ContainsFunc(args, func(arg string) bool { return strings.Contains(arg, "/") }) {
		return namedTargets(find, args)
	}
	found, err := find.all(args[:1])
	if err != nil {
		return nil, err
	}
	var all []target
	for _, r := range found {
		all = append(all, target{r, args[1:]})
	}
	return all, nil
}

func namedTargets(find finder, args []string) ([]target, error) {
	var all []target
	for _, arg := range args {
		kind, name, ok := strings.Cut(arg, "/")
		if !ok || kind == "" || name == "" || strings.Contains(name, "/") {
			return nil, usagef("%q is not of the form RESOURCE/NAME, as others are here: write pods/web-1 deployments/web", arg)
		}
		found, err := find.all([]string{kind})
		if err != nil {
			return nil, err
		}
		for _, r := range found {
			if last := len(all) - 1; last >= 0 && all[last].resource.GVR == r.GVR {
				all[last].names = append(all[last].names, name)
			} else {
				all = append(all, target{r, []string{name}})
			}
		}
	}
	return all, nil
}

// checkSegment refuses a name that would change the path of a request: in a path, .. is not a
// name.
func checkSegment(what, text string) error {
	wrong := content.IsPathSegmentName(text)
	if text == "" {
		wrong = []string{"it is empty"}
	}
	if len(wrong) == 0 {
		return nil
	}
	return usagef("a %s cannot be %q: %s", what, text, strings.Join(wrong, ", "))
}

// merged returns each resource once, with all of its names.
func merged(wanted []target) []target {
	var all []target
	for _, t := range wanted {
		i := slices.IndexFunc(all, func(known target) bool { return known.resource.GVR == t.resource.GVR })
		if i < 0 {
			all = append(all, t)
			continue
		}
		all[i].names = slices.Concat(all[i].names, t.names)
	}
	return all
}

// resources returns the resources that names mean: resources, several with commas between
// them, categories such as "all", and "*" for everything. Each resource is returned once.
func resources(catalog *mirror.Catalog, args []string) ([]mirror.Resource, error) {
	return copyable(catalog).all(args)
}

func (find finder) all(args []string) ([]mirror.Resource, error) {
	var all []mirror.Resource
	for _, arg := range args {
		for name := range strings.SplitSeq(arg, ",") {
			if name == "" {
				return nil, usagef("a resource's name is empty in %q; write pods,deployments", arg)
			}
			found, err := find(name)
			if err != nil {
				return nil, err
			}
			for _, r := range found {
				if !slices.ContainsFunc(all, func(known mirror.Resource) bool { return known.GVR == r.GVR }) {
					all = append(all, r)
				}
			}
		}
	}
	return all, nil
}

// notInDirectory explains that a directory does not have a resource, and says what it has.
func (at cluster) notInDirectory(err error) error {
	var unknown *mirror.UnknownResource
	if at.directory == nil || !errors.As(err, &unknown) {
		return err
	}
	var names []string
	for _, r := range at.catalog.All() {
		names = append(names, r.Name())
	}
	return fmt.Errorf("--from: the directory has no resource %q; it has %s (Secrets are written only with --with-secrets)", unknown.Name, strings.Join(names, ", "))
}

// copyable finds resources that can be listed and watched.
func copyable(catalog *mirror.Catalog) finder {
	return func(name string) ([]mirror.Resource, error) {
		if name == "*" {
			return catalog.All(), nil
		}
		found, err := catalog.Find(name)
		var unknown *mirror.UnknownResource
		if errors.As(err, &unknown) {
			if category := catalog.Category(name); len(category) > 0 {
				return category, nil
			}
		}
		return []mirror.Resource{found}, err
	}
}

// readable also finds resources that can only be listed, such as the metrics of pods.
func readable(catalog *mirror.Catalog) finder {
	return func(name string) ([]mirror.Resource, error) {
		found, err := copyable(catalog)(name)
		if err != nil && len(found) == 1 && slices.Contains(found[0].Verbs, "list") {
			return found, nil
		}
		return found, err
	}
}
