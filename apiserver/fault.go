package apiserver

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The statuses that apimachinery has no constructor for, worded as clients know
// them from real servers.

func fault(code int, reason metav1.StatusReason, format string, args ...any) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: fmt.Sprintf(format, args...),
	}}
}

// generic is what a real server says when no handler of its own was reached.
func generic(code int) *apierrors.StatusError {
	err := apierrors.NewGenericServerResponse(code, "", schema.GroupResource{}, "", "", 0, false)
	err.ErrStatus.Details = &metav1.StatusDetails{}
	switch code {
	case http.StatusUnprocessableEntity:
		err.ErrStatus.Message = "the server rejected our request due to an error in our request"
	case http.StatusUnsupportedMediaType:
		err.ErrStatus.Message = "415: Unsupported Media Type"
	}
	return err
}

// internal is a failure that a real server reports without a reason.
func internal(err error) *apierrors.StatusError {
	return fault(http.StatusInternalServerError, metav1.StatusReasonUnknown, "%s", err.Error())
}

const allMedia = "application/json, application/yaml, application/vnd.kubernetes.protobuf"

func notAcceptable(known bool) *apierrors.StatusError {
	if known {
		return fault(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable, "only the following media types are accepted: %s", allMedia)
	}
	err := fault(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable, "406: Not Acceptable\n\nAvailable representations: %s", allMedia)
	err.ErrStatus.Details = &metav1.StatusDetails{}
	return err
}

func unsupportedMedia(accepted string) *apierrors.StatusError {
	return fault(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
		"the body of the request was in an unknown format - accepted media types include: %s", accepted)
}

// tooLarge says that a version has not been reached.
func tooLarge(version, current int64) *apierrors.StatusError {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", version, current), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version",
	}}
	return err
}

func tooOld(version, floor int64) *apierrors.StatusError {
	return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", version, floor))
}

// invalid is for the options of a request.
func invalid(kind string, problems field.ErrorList) error {
	if len(problems) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", problems)
}

// sendable says whether an error is sent as an event of a watch that has been opened: a
// status, or one that becomes one. A client that must come again is refused, and the
// header of the answer says when.
func sendable(err error) bool {
	_, known := errors.AsType[*apierrors.StatusError](err)
	return known && !apierrors.IsTooManyRequests(err) || errors.Is(err, ErrExpired)
}

// statusOf makes of any error what is sent.
func statusOf(err error) metav1.Status {
	var status metav1.Status
	if known, ok := errors.AsType[*apierrors.StatusError](err); ok {
		status = known.Status()
	} else {
		status = internal(err).Status()
	}
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return status
}
