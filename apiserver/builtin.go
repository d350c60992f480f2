package apiserver

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

//go:embed builtin.txt
var builtinTable string

// builtins makes the built-in resources with empty collections.
func builtins() []*resource {
	var resources []*resource
	for line := range strings.Lines(builtinTable) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) != 9 {
			panic(fmt.Sprintf("builtin.txt: %d columns: %s", len(fields), line)) // part of the program
		}
		resources = append(resources, builtin(fields))
	}
	shareEvents(resources)
	return resources
}

func builtin(fields []string) *resource {
	for i, f := range fields {
		if f == "-" {
			fields[i] = ""
		}
	}
	traits := split(fields[8])
	r := &resource{
		group: fields[0], plural: fields[2], kind: fields[3], listKind: fields[3] + "List", singular: fields[4],
		shortNames: split(fields[5]), categories: split(fields[6]),
		namespaced: fields[7] == "Namespaced",
		counts:     slices.Contains(traits, "generation"),
		echoes:     slices.Contains(traits, "echo"),
	}
	for _, version := range split(fields[1]) {
		r.versions = append(r.versions, &endpoint{resource: r, version: version, status: slices.Contains(traits, "status")})
	}
	r.keeps(newCollection(r.versions[0].gvk(), false))
	return r
}

// shareEvents lets both groups that have events see the same ones.
func shareEvents(resources []*resource) {
	var content *collection
	for _, r := range resources {
		switch (schema.GroupResource{Group: r.group, Resource: r.plural}) {
		case schema.GroupResource{Resource: "events"}:
			content = r.content
		case schema.GroupResource{Group: "events.k8s.io", Resource: "events"}:
			r.keeps(content)
		}
	}
}

func split(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}
