// Package podfile reads real pods for benchmarks, from the answer of a server that was saved.
package podfile

import (
	"bytes"
	"fmt"
	"os"

	"github.com/klauspost/compress/zstd"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// magic begins what a server sends in protobuf.
var magic = []byte("k8s\x00")

// Read returns the pods of a file, which has the protobuf of a PodList as a server sends it,
// compressed by zstd.
func Read(file string) ([]corev1.Pod, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	decoder, err := zstd.NewReader(nil)
	if err != nil {
		return nil, err
	}
	defer decoder.Close()
	if data, err = decoder.DecodeAll(data, nil); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	raw, ok := bytes.CutPrefix(data, magic)
	if !ok {
		return nil, fmt.Errorf("%s: it is not an answer of a server in protobuf", file)
	}
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(raw); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var list corev1.PodList
	if err := list.Unmarshal(envelope.Raw); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return list.Items, nil
}
