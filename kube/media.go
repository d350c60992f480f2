package kube

import (
	"fmt"
	"mime"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// media is the format of a body.
type media uint8

const (
	mediaJSON media = iota
	mediaProtobuf
)

// mediaOf reads a response's Content-Type. A missing one means JSON, as in
// client-go.
func mediaOf(contentType string) (media, error) {
	if contentType == "" {
		return mediaJSON, nil
	}
	name, _, err := mime.ParseMediaType(contentType)
	switch {
	case err != nil:
		return 0, fmt.Errorf("the answer's Content-Type %q is malformed: %w", contentType, err)
	case name == runtime.ContentTypeJSON:
		return mediaJSON, nil
	case name == runtime.ContentTypeProtobuf:
		return mediaProtobuf, nil
	}
	return 0, fmt.Errorf("the answer is %s, not JSON or Kubernetes protobuf: is this an API server, or a proxy in front of it?", contentType)
}

// mediaPolicy is what a config allows to request.
type mediaPolicy struct {
	protobuf, json bool
}

// mediaPolicyOf reads a config as client-go does: what it accepts if it says so,
// else the type it prefers; without either, protobuf where possible.
func mediaPolicyOf(cfg *rest.Config) mediaPolicy {
	accepted := strings.Split(cfg.AcceptContentTypes, ",")
	if cfg.AcceptContentTypes == "" {
		switch cfg.ContentType {
		case runtime.ContentTypeJSON:
			return mediaPolicy{json: true}
		default:
			return mediaPolicy{protobuf: true, json: true}
		}
	}
	names := func(wanted string) bool {
		return slices.ContainsFunc(accepted, func(clause string) bool {
			name, _, _ := strings.Cut(clause, ";")
			name = strings.TrimSpace(name)
			return strings.EqualFold(name, wanted) || name == "*/*" || name == "application/*"
		})
	}
	p := mediaPolicy{protobuf: names(runtime.ContentTypeProtobuf), json: names(runtime.ContentTypeJSON)}
	if !p.protobuf && !p.json {
		// The config names only formats that we cannot read, such as CBOR or YAML.
		p.json = true
	}
	return p
}

// accept is the Accept header of a request. Objects without a protobuf form come as
// JSON whatever the config says, as with client-go's dynamic client: a config
// shared by several clients says protobuf for those that can.
func (p mediaPolicy) accept(r request, plain bool) string {
	protobuf := r.protobuf && p.protobuf && !plain
	json := p.json || !protobuf
	var types []string
	add := func(name, parameters string) {
		if name == runtime.ContentTypeProtobuf && protobuf || name == runtime.ContentTypeJSON && json {
			types = append(types, name+parameters)
		}
	}
	if r.collection.Object == metadataType {
		as := ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
		if r.options.Watch {
			as = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
		}
		add(runtime.ContentTypeProtobuf, as)
		add(runtime.ContentTypeJSON, as)
		add(runtime.ContentTypeJSON, "")
		return strings.Join(types, ",")
	}
	add(runtime.ContentTypeProtobuf, "")
	add(runtime.ContentTypeJSON, "")
	return strings.Join(types, ",")
}

// refusesMedia recognises the answer of a server that cannot write the requested
// format.
func refusesMedia(err error) bool {
	return apierrors.IsNotAcceptable(err) || apierrors.IsUnsupportedMediaType(err)
}
