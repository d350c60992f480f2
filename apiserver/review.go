package apiserver

import (
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

// everybody is who all clients are.
const everybody = "tarn:everybody"

// review answers who the user is and what the user may do: an accepted user may do
// everything. It returns false for other reviews.
func (s *Server) review(w http.ResponseWriter, r *http.Request, to target) bool {
	fill, known := reviews[to.gv.WithResource(to.plural)]
	if !known || r.Method != http.MethodPost || to.name != "" {
		return false
	}
	object, err := readReview(r)
	if err != nil {
		sendError(w, r, err)
		return true
	}
	if !fill(object) {
		sendError(w, r, generic(http.StatusBadRequest))
		return true
	}
	a, err := negotiate(r, plain)
	if err != nil {
		sendError(w, r, err)
		return true
	}
	kind := object.GetObjectKind().GroupVersionKind()
	data, err := encodeJSON(object)
	if typed, ok := object.(message); ok && a.media == asProtobuf {
		if data, err = typed.Marshal(); err == nil {
			data = envelope(kind, len(data), data)
		}
	}
	if err != nil {
		sendError(w, r, err)
		return true
	}
	send(w, r, http.StatusCreated, a.media, body{data})
	return true
}

func readReview(r *http.Request) (runtime.Object, error) {
	written, err := bodyMedia(r)
	if err != nil {
		return nil, err
	}
	data, err := readBody(r)
	if err != nil {
		return nil, err
	}
	var decoder runtime.Decoder = protobuf.NewSerializer(scheme, scheme)
	if written != asProtobuf {
		decoder = kjson.NewSerializerWithOptions(kjson.DefaultMetaFactory, scheme, scheme, kjson.SerializerOptions{Yaml: written == asYAML})
	}
	object, kind, err := decoder.Decode(data, nil, nil)
	if err != nil {
		return nil, undecodableReview(err)
	}
	object.GetObjectKind().SetGroupVersionKind(*kind)
	return object, nil
}

func undecodableReview(err error) error {
	return fault(http.StatusBadRequest, "BadRequest", "the review could not be read: %v", err)
}

var allowed = authorizationv1.SubjectAccessReviewStatus{Allowed: true, Reason: "this server allows everything"}

var asEverybody = authenticationv1.UserInfo{Username: everybody}

// filledIn makes a review of what fills in an object of one kind.
func filledIn[T runtime.Object](fill func(T)) func(runtime.Object) bool {
	return func(object runtime.Object) bool {
		o, ok := object.(T)
		if ok {
			fill(o)
		}
		return ok
	}
}

// reviews fill in the status; false if the object is of another kind.
var reviews = map[schema.GroupVersionResource]func(runtime.Object) bool{
	authorizationv1.SchemeGroupVersion.WithResource("selfsubjectaccessreviews"):  filledIn(func(o *authorizationv1.SelfSubjectAccessReview) { o.Status = allowed }),
	authorizationv1.SchemeGroupVersion.WithResource("subjectaccessreviews"):      filledIn(func(o *authorizationv1.SubjectAccessReview) { o.Status = allowed }),
	authorizationv1.SchemeGroupVersion.WithResource("localsubjectaccessreviews"): filledIn(func(o *authorizationv1.LocalSubjectAccessReview) { o.Status = allowed }),
	authenticationv1.SchemeGroupVersion.WithResource("selfsubjectreviews"):       filledIn(func(o *authenticationv1.SelfSubjectReview) { o.Status.UserInfo = asEverybody }),
	authenticationv1.SchemeGroupVersion.WithResource("tokenreviews"): filledIn(func(o *authenticationv1.TokenReview) {
		o.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: asEverybody}
	}),
}
