package e2e

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestProgram calls the program as users do, on either server, and expects the
// same words.
func TestProgram(t *testing.T) {
	said := map[string]string{}
	for _, server := range servers {
		t.Run(server.name, func(t *testing.T) {
			if server.name == realServer && testing.Short() {
				t.Skip("the real server is left out with -short")
			}
			said[server.name] = session(t, server.start(t))
			t.Log(said[server.name])
		})
	}
	if real, ok := said[realServer]; ok && !t.Failed() && real != said[embeddedServer] {
		t.Errorf("on the real server:\n%s\non the embedded one:\n%s", real, said[embeddedServer])
	}
}

// scene is a namespace in which nobody but the test does anything.
const scene = "scene"

func setScene(t *testing.T, server Server) {
	t.Helper()
	server.Namespace(scene)
	admin := server.Admin()
	for _, name := range []string{"a", "b"} {
		config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"name": name}}, Data: map[string]string{"text": "old"}}
		if _, err := admin.CoreV1().ConfigMaps(scene).Create(t.Context(), config, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "login", Labels: map[string]string{"name": "login"}}, StringData: map[string]string{"password": "12345"}}
	if _, err := admin.CoreV1().Secrets(scene).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"back", "front"} {
		stopped := newDeployment(name, 0)
		stopped.Spec.RevisionHistoryLimit = new(int32(i))
		if _, err := admin.AppsV1().Deployments(scene).Create(t.Context(), stopped, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	settled(t, server)
}

// settled waits until a controller-manager, if there is one, has seen the
// Deployments; on a server without, it says what one would.
func settled(t *testing.T, server Server) {
	t.Helper()
	if _, real := server.(*Cluster); real {
		server.Settle(scene)
		return
	}
	for _, name := range []string{"back", "front"} {
		status := appsv1.DeploymentStatus{ObservedGeneration: 1}
		deployment, err := server.Admin().AppsV1().Deployments(scene).Get(t.Context(), name, metav1.GetOptions{})
		if err == nil {
			deployment.Status = status
			_, err = server.Admin().AppsV1().Deployments(scene).UpdateStatus(t.Context(), deployment, metav1.UpdateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// session is what the program says, without what is never the same.
func session(t *testing.T, server Server) string {
	setScene(t, server)
	tarn := buildProgram(t, server.writeKubeconfig(t.TempDir()))
	var said strings.Builder
	note := func(what, text string) { fmt.Fprintf(&said, "$ %s\n%s", what, always(text)) }
	for _, line := range []string{
		"get configmaps,secrets -n scene -l name",
		"get deployments -n scene",
		"get deploy/front -n scene -o jsonpath={.spec.revisionHistoryLimit}{\"\\n\"}",
		"get secret login -n scene -o jsonpath={.data}{\"\\n\"}",
		"get cm -A -l name -o custom-columns=NS:.metadata.namespace,NAME:.metadata.name,TEXT:.data.text",
		"get cm -n scene --field-selector metadata.name=b -o name",
		"get cm none -n scene",
		"get podz",
		"get cm -n scene --field-selector spec.nope=1",
		"query deployments -n scene --where spec.revisionHistoryLimit=1",
		"query cm -n scene --where data.text=old --sort-by -metadata.name -o name",
		"query cm -A --where data.text=old --count",
		"verify configmaps secrets -n scene -l name",
	} {
		note("tarn "+line, tarn.Run(strings.Fields(line)...))
	}
	note("kubectl tarn get cm", tarn.Plugin("get", "cm", "-n", scene, "-l", "name"))
	note("kubectl tarn get podz", tarn.Plugin("get", "podz"))
	note("tarn watch", watchSession(t, server, tarn))
	await, end := tarn.Follow("mirror", "secrets", "-n", scene, "--interval", "1s", "--verify", "10s")
	await("synced 1 object of 1 resource")
	await("secrets: 1 object, ")
	end()
	return said.String()
}

// watchSession follows changes by field.
func watchSession(t *testing.T, server Server, tarn *Program) string {
	t.Helper()
	configs := server.Admin().CoreV1().ConfigMaps(scene)
	await, end := tarn.Follow("watch", "configmaps", "-n", scene, "-l", "name", "--diff")
	await("Following 2 objects")
	if _, err := configs.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"data":{"text":"new","more":"yes"}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	await("data.text: old → new")
	created := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", Labels: map[string]string{"name": "c"}}}
	if _, err := configs.Create(t.Context(), created, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	await("configmaps/scene/c")
	if err := configs.Delete(t.Context(), "b", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await("configmaps/scene/b")
	// What no longer matches is gone for who selects by labels.
	if _, err := configs.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"metadata":{"labels":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	await("DELETED  configmaps/scene/a")
	return end()
}

var changing = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z`), "TIME"},
	{regexp.MustCompile(`\b[0-9a-f]{12,}\b`), "DIGEST"},
	{regexp.MustCompile(`\b\d+(ms|s|m|m\d+s)\b`), "AGE"},
	{regexp.MustCompile(`\b\d{2,}\b`), "N"},
	{regexp.MustCompile(` {2,}`), "  "},
	{regexp.MustCompile(`(?m) +$`), ""},
}

// always is a text without versions, ages and the widths that they make.
func always(text string) string {
	for _, c := range changing {
		text = c.pattern.ReplaceAllString(text, c.instead)
	}
	return text
}
