package kube

import (
	"io"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/tarnproject/tarn"
)

// What is decoded is counted, for a source and for its client.
func TestDecoded(t *testing.T) {
	all := newPods(400)
	var events []byte
	for _, p := range all[:300] {
		events = append(events, event(t, protobufType, "ADDED", p)...)
	}
	list := podList(t, protobufType, all, "5")
	s := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") != "" {
			answer(w, protobufType+";stream=watch", events)
			return
		}
		answer(w, protobufType, list)
	})
	client := s.client(t, nil)
	one, err := NewSource[*corev1.Pod](client, pods, SourceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewSource[*corev1.Pod](client, pods, SourceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if one.Decoded() != (Decoded{}) || client.Decoded() != (Decoded{}) {
		t.Errorf("before anything was asked: %+v", one.Decoded())
	}
	if _, err := one.List(t.Context(), tarn.ListQuery{}); err != nil {
		t.Fatal(err)
	}
	listed := one.Decoded()
	if listed.Objects != 400 || listed.Time <= 0 || listed.Bytes > uint64(len(list)) || listed.Bytes < uint64(len(list))*9/10 {
		t.Errorf("a list of 400 objects in %d bytes: %+v", len(list), listed)
	}
	stream, err := other.Watch(t.Context(), tarn.WatchQuery{From: "5"})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	if _, err := collect(t, stream, 64); err != io.EOF {
		t.Fatal(err)
	}
	watched := other.Decoded()
	if watched.Objects != 300 || watched.Time <= 0 || watched.Bytes > uint64(len(events)) || watched.Bytes < uint64(len(events))*9/10 {
		t.Errorf("a stream of 300 events in %d bytes: %+v", len(events), watched)
	}
	sum := Decoded{listed.Objects + watched.Objects, listed.Bytes + watched.Bytes, listed.Time + watched.Time}
	if client.Decoded() != sum || one.Decoded() != listed {
		t.Errorf("%+v of the client, %+v of its sources", client.Decoded(), sum)
	}
}
