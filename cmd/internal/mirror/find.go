package mirror

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Find returns the resource that a name means: pods, pod, po and Pod, with the group as in
// deployments.apps, or with version and group as in deployments.v1.apps. Case does not
// matter. If several groups have the name, it means the server's first group, as with
// kubectl.
//
// The error is an [UnknownResource] if no resource has that name.
func (c *Catalog) Find(name string) (Resource, error) {
	asked := strings.ToLower(strings.TrimSuffix(strings.TrimSpace(name), "."))
	word, rest, _ := strings.Cut(asked, ".")
	for _, fits := range []func(Resource) bool{
		func(r Resource) bool { return rest == "" },
		func(r Resource) bool { return r.GVR.Group == rest },
		func(r Resource) bool { return strings.TrimSuffix(r.GVR.Version+"."+r.GVR.Group, ".") == rest },
		func(r Resource) bool { return strings.HasPrefix(r.GVR.Group, rest) },
	} {
		if r, ok := c.first(word, fits); ok {
			if !r.copyable() {
				return r, fmt.Errorf("mirror: %s cannot be copied: the server offers no list and watch of it, only %s", r.Name(), strings.Join(r.Verbs, ", "))
			}
			return r, nil
		}
	}
	return Resource{}, &UnknownResource{Name: name, Nearest: c.nearest(asked)}
}

// first returns the first resource with that name. Resources that can be copied come first,
// and a resource's own name counts before its short names.
func (c *Catalog) first(word string, fits func(Resource) bool) (found Resource, ok bool) {
	best := 0
	for _, resources := range [][]Resource{c.preferred, c.others} {
		for _, r := range resources {
			rank := r.called(word)
			if rank > 0 && r.copyable() {
				rank += 10
			}
			if rank > best && fits(r) {
				best, found, ok = rank, r, true
			}
		}
	}
	return found, ok
}

// called says whether a word, in lower case, means the resource. If so it is more than 0, and
// a larger number is a better match.
func (r Resource) called(word string) int {
	switch {
	case word == "":
		return 0
	case word == r.GVR.Resource:
		return 4
	case word == r.Singular:
		return 3
	case slices.Contains(r.ShortNames, word):
		return 2
	case word == strings.ToLower(r.Kind):
		return 1
	}
	return 0
}

// UnknownResource says that a server has no resource with a name.
type UnknownResource struct {
	Name string
	// Nearest are similar names of resources, best first.
	Nearest []string
}

func (e *UnknownResource) Error() string {
	advice := "; is its CRD installed?"
	if len(e.Nearest) > 0 {
		advice = "; did you mean " + strings.Join(e.Nearest, ", ") + "?"
	}
	return fmt.Sprintf("mirror: the server has no resource %q%s", e.Name, advice)
}

// maxNearest is how many names an error suggests.
const maxNearest = 3

func (c *Catalog) nearest(asked string) []string {
	type candidate struct {
		name     string
		distance int
	}
	var found []candidate
	// One error in three letters: with more, all short names would be similar.
	limit := max(1, len(asked)/3)
	for _, r := range c.All() {
		best := limit + 1
		for _, word := range append([]string{r.Name(), r.GVR.Resource, r.Singular, strings.ToLower(r.Kind)}, r.ShortNames...) {
			d := editDistance(asked, word)
			if len(asked) > 2 && strings.HasPrefix(word, asked) {
				d = min(d, 1)
			}
			best = min(best, d)
		}
		if best <= limit {
			found = append(found, candidate{r.Name(), best})
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(a.distance, b.distance) })
	var names []string
	for _, f := range found[:min(len(found), maxNearest)] {
		names = append(names, f.name)
	}
	return names
}

// editDistance is the number of letters to insert, remove, change or swap with their
// neighbour to turn one word into the other.
func editDistance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			change := last[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
