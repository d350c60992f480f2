package apiserver

import (
	"cmp"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// answer is how a client wants its answer.
type answer struct {
	media media
	shape shape
	// version of the shape's kind: v1 or v1beta1.
	shapeVersion string
	// discovery is the version in which a client wants all of discovery at once,
	// empty for the plain documents.
	discovery string
}

type clause struct {
	media      string
	parameters map[string]string
	quality    float64
}

func clauses(header string) []clause {
	if strings.TrimSpace(header) == "" {
		return []clause{{media: "*/*"}}
	}
	var found []clause
	for part := range strings.SplitSeq(header, ",") {
		name, parameters, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		c := clause{media: name, parameters: parameters, quality: 1}
		if q, err := strconv.ParseFloat(parameters["q"], 64); err == nil {
			c.quality = q
		}
		found = append(found, c)
	}
	slices.SortStableFunc(found, func(a, b clause) int { return cmp.Compare(b.quality, a.quality) })
	return found
}

// negotiate picks the first way to answer that both sides know. suits may turn
// one down.
func negotiate(r *http.Request, suits func(answer) bool) (answer, error) {
	known := false
	for _, c := range clauses(r.Header.Get("Accept")) {
		a, ok := c.answer()
		if !ok {
			continue
		}
		known = true
		if a, ok = c.reshape(a); ok && suits(a) {
			return a, nil
		}
	}
	return answer{}, notAcceptable(known)
}

func (c clause) answer() (answer, bool) {
	switch c.media {
	case "application/json", "*/*", "application/*":
		return answer{media: asJSON}, true
	case "application/yaml":
		return answer{media: asYAML}, true
	case "application/vnd.kubernetes.protobuf":
		return answer{media: asProtobuf}, true
	}
	return answer{}, false
}

func (c clause) reshape(a answer) (answer, bool) {
	group, version := c.parameters["g"], c.parameters["v"]
	switch as := c.parameters["as"]; {
	case as == "":
		return a, true
	case group == "apidiscovery.k8s.io" && as == "APIGroupDiscoveryList" && (version == "v2" || version == "v2beta1"):
		a.discovery = version
		return a, true
	case group != "meta.k8s.io" || version != "v1" && version != "v1beta1":
		return a, false
	case as == "Table":
		a.shape = table
	case version == "v1" && (as == "PartialObjectMetadata" || as == "PartialObjectMetadataList"):
		a.shape = partial
	default:
		return a, false
	}
	a.shapeVersion = version
	return a, true
}

// suits are the answers that an endpoint can give: custom resources have no
// protobuf, and neither have tables.
func (e *endpoint) suits(a answer) bool {
	if a.discovery != "" {
		return false
	}
	return a.media != asProtobuf || a.shape == partial || a.shape == whole && !e.custom
}

// plain answers are neither of objects nor of discovery.
func plain(a answer) bool { return a.discovery == "" && a.shape == whole }
