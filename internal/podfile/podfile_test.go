package podfile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestRead(t *testing.T) {
	list := &corev1.PodList{Items: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, {ObjectMeta: metav1.ObjectMeta{Name: "b"}}}}
	raw, err := list.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	envelope, err := (&runtime.Unknown{Raw: raw}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	write := func(data []byte) string {
		file := filepath.Join(t.TempDir(), "pods")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	pods, err := Read(write(encoder.EncodeAll(append([]byte("k8s\x00"), envelope...), nil)))
	if err != nil || len(pods) != 2 || pods[1].Name != "b" {
		t.Errorf("read %v, %v", pods, err)
	}
	for what, file := range map[string]string{
		"no file": "none", "no zstd": write([]byte("text")), "no protobuf": write(encoder.EncodeAll([]byte("{}"), nil)),
		"no envelope": write(encoder.EncodeAll([]byte("k8s\x00\x0a\x7f"), nil)),
	} {
		if _, err := Read(file); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}
