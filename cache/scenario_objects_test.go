package cache

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/tarnproject/tarn/internal/story"
)

// Objects are written as name@version, with "/uid" and "=content" if they matter: "a@3",
// "a@3/u2", "a@3=blue". An empty version is "a@". An object of another kind has that
// kind before a colon, "secret:a@3", or is one of the words nil, typednil and status.

// objects makes and shows objects of one type.
type objects struct{ unstructured bool }

func (o objects) example() runtime.Object {
	if o.unstructured {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
		return u
	}
	return &corev1.ConfigMap{}
}

// parse makes an object of its text.
func (o objects) parse(text string) runtime.Object {
	switch text {
	case "nil":
		return nil
	case "typednil":
		return (*corev1.ConfigMap)(nil)
	case "status":
		return &metav1.Status{Status: metav1.StatusFailure, Code: 500, Message: "unable to decode an event"}
	}
	kind, rest, foreign := strings.Cut(text, ":")
	if !foreign {
		kind, rest = "configmap", text
	}
	rest, content, _ := strings.Cut(rest, "=")
	name, version, _ := strings.Cut(rest, "@")
	version, uid, other := strings.Cut(version, "/")
	if !other {
		uid = name
	}
	m := metav1.ObjectMeta{Name: name, ResourceVersion: version, UID: types.UID(uid)}
	if kind == "nameless" {
		m.Name = ""
		kind = "configmap"
	}
	if o.unstructured {
		return unstructuredObject(kind, m)
	}
	switch kind {
	case "configmap":
		c := &corev1.ConfigMap{ObjectMeta: m}
		if content != "" {
			c.Data = map[string]string{"content": content}
		}
		return c
	case "secret":
		return &corev1.Secret{ObjectMeta: m}
	}
	panic("no object: " + text)
}

func unstructuredObject(kind string, m metav1.ObjectMeta) *unstructured.Unstructured {
	gvk := map[string]schema.GroupVersionKind{
		"configmap": {Version: "v1", Kind: "ConfigMap"},
		"secret":    {Version: "v1", Kind: "Secret"},
		"table":     {Group: "meta.k8s.io", Version: "v1", Kind: "Table"},
	}[kind]
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	u.SetName(m.Name)
	u.SetResourceVersion(m.ResourceVersion)
	u.SetUID(m.UID)
	return u
}

// list makes a list of objects.
func (o objects) list(version, token string, items []string) runtime.Object {
	if o.unstructured && len(items) > 0 && items[0] == "table" {
		table := &unstructured.Unstructured{Object: map[string]any{"items": []any{}}}
		table.SetGroupVersionKind(schema.GroupVersionKind{Group: "meta.k8s.io", Version: "v1", Kind: "Table"})
		return table
	}
	if o.unstructured {
		list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMapList"}}
		list.SetResourceVersion(version)
		list.SetContinue(token)
		for _, item := range items {
			list.Items = append(list.Items, *o.parse(item).(*unstructured.Unstructured))
		}
		return list
	}
	if plain := (&corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: version, Continue: token}}); !slices.ContainsFunc(items, isForeign) {
		for _, item := range items {
			plain.Items = append(plain.Items, *o.parse(item).(*corev1.ConfigMap))
		}
		return plain
	}
	// A list of anything, so that foreign objects fit in.
	list := &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: version, Continue: token}}
	for _, item := range items {
		list.Items = append(list.Items, runtime.RawExtension{Object: o.parse(item)})
	}
	return list
}

func isForeign(item string) bool {
	return strings.Contains(item, ":") || !strings.Contains(item, "@")
}

// bookmark makes the object of a bookmark.
func (o objects) bookmark(version string, end bool) runtime.Object {
	object := o.example()
	m, err := meta.Accessor(object)
	if err != nil {
		panic(err)
	}
	m.SetResourceVersion(version)
	if end {
		m.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	return object
}

// show is the text of an object.
func show(object any) string {
	switch d := object.(type) {
	case DeletedFinalStateUnknown:
		if d.Obj == nil {
			return d.Key + " (final state unknown, no object)"
		}
		return show(d.Obj) + " (final state unknown)"
	case *DeletedFinalStateUnknown:
		return d.Key + " (final state unknown, by pointer)"
	}
	m, err := meta.Accessor(object)
	if err != nil {
		return fmt.Sprintf("%T", object)
	}
	text := m.GetName() + "@" + m.GetResourceVersion()
	if uid := string(m.GetUID()); uid != m.GetName() {
		text += "/" + uid
	}
	if c, ok := object.(*corev1.ConfigMap); ok && c.Data["content"] != "" {
		text += "=" + c.Data["content"]
	}
	if _, ok := object.(*corev1.Secret); ok {
		text = "secret:" + text
	}
	return text
}

// fault makes an error of its words, such as "429 after=5".
func fault(words []string) error {
	resource := schema.GroupResource{Resource: "configmaps"}
	after := 0
	if len(words) > 1 {
		after, _ = strconv.Atoi(strings.TrimPrefix(words[1], "after="))
	}
	switch words[0] {
	case "refused":
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	case "reset":
		return &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	case "410":
		return apierrors.NewResourceExpired("too old resource version")
	case "gone":
		return apierrors.NewGone("too old resource version")
	case "429":
		return apierrors.NewTooManyRequests("slow down", after)
	case "500":
		return apierrors.NewInternalError(errors.New("etcd is away"))
	case "decode":
		return apierrors.FromObject(apierrors.NewClientErrorReporter(http.StatusInternalServerError, "GET", "ClientWatchDecoding").
			AsObject(errors.New("unable to decode an event from the watch stream")))
	case "503":
		return apierrors.NewServiceUnavailable("not ready")
	case "403":
		return apierrors.NewForbidden(resource, "", errors.New("no rights"))
	case "404":
		return apierrors.NewNotFound(resource, "")
	case "422":
		return apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil)
	case "toolarge":
		err := apierrors.NewTimeoutError("Too large resource version: 9, current: 5", 1)
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
		return err
	}
	return errors.New(strings.Join(words, " "))
}

// showError is the text of an error as far as both worlds should agree: by
// status and not by words.
func showError(err error) string {
	prefix := ""
	if strings.Contains(err.Error(), "failed to list ") {
		prefix = "list: "
	}
	var short *VeryShortWatchError
	var status apierrors.APIStatus
	var unexpected *apierrors.UnexpectedObjectError
	switch {
	case errors.As(err, &short):
		return "very short watch"
	case errors.As(err, &unexpected):
		return prefix + "no status"
	case utilnet.IsConnectionRefused(err):
		return prefix + "refused"
	case errors.As(err, &status):
		return fmt.Sprintf("%s%d %s", prefix, status.Status().Code, status.Status().Reason)
	}
	if name := story.ErrorName(err); name != "" {
		return prefix + name
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	return prefix + "other: " + text
}
