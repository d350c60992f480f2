package kube_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/memory"
)

// Objects of a source that passes bytes on are those bytes, from lists and from watches.
func TestEncodedSource(t *testing.T) {
	server := apiserver.New(apiserver.Options{})
	t.Cleanup(server.Close)
	put := func(name, value string) {
		if err := server.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"v": value}}); err != nil {
			t.Fatal(err)
		}
	}
	put("a", "1")
	client, err := kube.NewClient(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	read := func(raw []byte) (*corev1.ConfigMap, error) {
		var c corev1.ConfigMap
		return &c, c.Unmarshal(raw)
	}
	source, err := kube.NewEncodedSource(client,
		kube.Collection{Resource: corev1.SchemeGroupVersion.WithResource("configmaps"), Kind: corev1.SchemeGroupVersion.WithKind("ConfigMap")},
		kube.Encoding[string]{
			Protobuf: true,
			Decode: func(raw []byte) (string, error) {
				c, err := read(raw)
				if err == nil && c.Name == "bad" {
					err = errors.New("not this one")
				}
				return string(raw), err
			},
			Describe: func(object string) (tarn.Meta, error) {
				c, err := read([]byte(object))
				return tarn.Meta{Key: tarn.Key(c.Namespace + "/" + c.Name), Version: tarn.Version(c.ResourceVersion), UID: string(c.UID)}, err
			},
		}, kube.SourceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	replica, err := tarn.NewReplica(source, memory.New[string](), tarn.Options[string]{WatchList: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { _ = replica.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-replica.Done() })
	put("b", "2")
	put("bad", "3")
	put("a", "4")
	if err := replica.WaitFor(ctx, tarn.Version(server.Version())); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"a": "4", "b": "2"} {
		raw, _ := replica.Get(tarn.Key("default/" + name))
		if c, err := read([]byte(raw)); err != nil || c.Data["v"] != value {
			t.Errorf("%s: %v, %v", name, c, err)
		}
	}
	if _, ok := replica.Get("default/bad"); ok || len(replica.Health().Bad) == 0 {
		t.Errorf("an object that cannot be decoded: %v", replica.Health().Bad)
	}
}
