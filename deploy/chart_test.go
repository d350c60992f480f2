package deploy

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/tarnproject/tarn/apiserver"
)

var update = flag.Bool("update", false, "write the manifests")

// profiles are the values that manifests are rendered with.
var profiles = map[string]map[string]any{
	"deployment": nil,
	"daemonset":  {"mode": "daemonset"},
}

// render returns the documents that a chart makes of values.
func render(t *testing.T, values map[string]any) ([]string, error) {
	t.Helper()
	c, err := loader.Load("helm/tarn-relay")
	if err != nil {
		t.Fatal(err)
	}
	all, err := chartutil.ToRenderValues(c, values, chartutil.ReleaseOptions{Name: "tarn-relay", Namespace: "tarn", IsInstall: true}, chartutil.DefaultCapabilities)
	if err != nil {
		t.Fatal(err)
	}
	return renderChart(c, all)
}

func renderChart(c *chart.Chart, values chartutil.Values) ([]string, error) {
	files, err := engine.Render(c, values)
	if err != nil {
		return nil, err
	}
	var documents []string
	for _, name := range slices.Sorted(mapKeys(files)) {
		if filepath.Ext(name) != ".yaml" {
			continue
		}
		for _, document := range regexp.MustCompile(`(?m)^---\n`).Split(files[name], -1) {
			if strings.TrimSpace(document) != "" {
				documents = append(documents, strings.TrimSpace(document)+"\n")
			}
		}
	}
	return documents, nil
}

func mapKeys(files map[string]string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for name := range files {
			if !yield(name) {
				return
			}
		}
	}
}

// The manifests are what the chart makes of its values.
func TestManifests(t *testing.T) {
	for name, values := range profiles {
		documents, err := render(t, values)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("manifests", name+".yaml")
		want := "# Rendered from deploy/helm/tarn-relay; go test ./deploy -update writes it.\napiVersion: v1\nkind: Namespace\nmetadata:\n  name: tarn\n---\n" +
			strings.ReplaceAll(strings.Join(documents, "---\n"), "app.kubernetes.io/managed-by: Helm", "app.kubernetes.io/managed-by: kubectl")
		if *update {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		found, err := os.ReadFile(file)
		if err != nil || string(found) != want {
			t.Errorf("%s is not what the chart makes (%v): go test ./deploy -update writes it", file, err)
		}
	}
}

// decode reads a document strictly: a field that does not exist is an error.
func decode(t *testing.T, document string) runtime.Object {
	t.Helper()
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{Yaml: true, Strict: true})
	object, _, err := strict.Decode([]byte(document), nil, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, document)
	}
	return object
}

func find[T runtime.Object](t *testing.T, documents []string) T {
	t.Helper()
	for _, document := range documents {
		if object, ok := decode(t, document).(T); ok {
			return object
		}
	}
	t.Fatalf("there is no %T", *new(T))
	return *new(T)
}

var everything = map[string]any{
	"auditLog": true, "nodeSelector": map[string]any{"a": "b"}, "tolerations": []any{map[string]any{"operator": "Exists"}}, "priorityClassName": "system-cluster-critical",
	"clientCA":      map[string]any{"configMapName": "client-ca", "impersonate": true, "users": []any{"ann"}, "groups": []any{"devs"}},
	"networkPolicy": map[string]any{"clients": []any{map[string]any{"podSelector": map[string]any{}}}},
}

// clusterCA has the authorities of client certificates come from the cluster.
var clusterCA = map[string]any{"clientCA": map[string]any{"cluster": true, "impersonate": true, "users": []any{"ann"}, "groups": []any{"devs"}}}

// Every document is valid, and a server takes it.
func TestDocumentsAreTaken(t *testing.T) {
	for name, values := range map[string]map[string]any{"deployment": nil, "daemonset": profiles["daemonset"], "everything": everything, "cluster's authorities": clusterCA} {
		documents, err := render(t, values)
		if err != nil {
			t.Fatal(err)
		}
		server := apiserver.New(apiserver.Options{})
		defer server.Close()
		client, err := dynamic.NewForConfig(server.Config())
		if err != nil {
			t.Fatal(err)
		}
		documents = append([]string{"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: tarn\n"}, documents...)
		for _, document := range documents {
			kind := decode(t, document).GetObjectKind().GroupVersionKind()
			var object unstructured.Unstructured
			if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
				t.Fatal(err)
			}
			plural := strings.ToLower(kind.Kind) + "s"
			if kind.Kind == "NetworkPolicy" {
				plural = "networkpolicies"
			}
			resource := client.Resource(schema.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: plural})
			var to dynamic.ResourceInterface = resource
			if object.GetNamespace() != "" {
				to = resource.Namespace(object.GetNamespace())
			}
			if _, err := to.Create(t.Context(), &object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}); err != nil {
				t.Errorf("%s: %s: %v", name, kind.Kind, err)
			}
		}
	}
}

// The relay's account may list and watch what is relayed and ask about callers; no more.
func TestRights(t *testing.T) {
	base := []string{"list,watch pods ", "list,watch nodes ", "list,watch services ", "list,watch endpointslices ", "create tokenreviews ", "create subjectaccessreviews "}
	for name, test := range map[string]struct {
		values map[string]any
		want   []string
	}{
		"deployment": {nil, base}, "daemonset": {profiles["daemonset"], base},
		"everything":            {everything, append(slices.Clone(base), "impersonate users ann", "impersonate groups devs")},
		"cluster's authorities": {clusterCA, append(slices.Clone(base), "impersonate users ann", "impersonate groups devs")},
	} {
		documents, err := render(t, test.values)
		if err != nil {
			t.Fatal(err)
		}
		var rights []string
		for _, rule := range find[*rbacv1.ClusterRole](t, documents).Rules {
			rights = append(rights, strings.Join(rule.Verbs, ",")+" "+strings.Join(rule.Resources, ",")+" "+strings.Join(rule.ResourceNames, ","))
		}
		if !slices.Equal(rights, test.want) {
			t.Errorf("%s: %q, want %q", name, rights, test.want)
		}
		if bound := strings.Contains(strings.Join(documents, ""), "name: extension-apiserver-authentication-reader"); bound != (name == "cluster's authorities") {
			t.Errorf("%s: may it read the authorities of the cluster: %v", name, bound)
		}
	}
}

// Containers have no more than they need, and every flag is one of the program.
func TestPods(t *testing.T) {
	help, err := os.ReadFile("../cmd/internal/cli/testdata/help/relay.txt")
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range map[string]map[string]any{"deployment": nil, "daemonset": profiles["daemonset"], "everything": everything, "cluster's authorities": clusterCA} {
		documents, err := render(t, values)
		if err != nil {
			t.Fatal(err)
		}
		var pod corev1.PodSpec
		if name == "daemonset" {
			pod = find[*appsv1.DaemonSet](t, documents).Spec.Template.Spec
		} else {
			deployment := find[*appsv1.Deployment](t, documents)
			pod = deployment.Spec.Template.Spec
			if *deployment.Spec.Replicas != 2 || !*pod.SecurityContext.RunAsNonRoot || len(pod.TopologySpreadConstraints) != 1 {
				t.Errorf("%s: %+v", name, deployment.Spec)
			}
		}
		c := pod.Containers[0]
		s := c.SecurityContext
		if *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(s.Capabilities.Add) > 0 {
			t.Errorf("%s: %+v", name, s)
		}
		if c.LivenessProbe.HTTPGet.Path != "/livez" || c.ReadinessProbe.HTTPGet.Path != "/readyz" || c.Resources.Requests.Memory().IsZero() {
			t.Errorf("%s: %+v", name, c)
		}
		for _, arg := range c.Args {
			flag, _, _ := strings.Cut(arg, "=")
			if strings.HasPrefix(flag, "--") && !regexp.MustCompile(`(?m)^ +`+flag+` `).Match(help) {
				t.Errorf("%s: tarn relay has no flag %s", name, flag)
			}
		}
		if authorities := map[string]string{"everything": "/etc/tarn/client-ca/ca.crt", "cluster's authorities": "cluster"}[name]; authorities != "" &&
			(!slices.Contains(c.Args, "--impersonate") || !slices.Contains(c.Args, "--client-ca="+authorities)) {
			t.Errorf("%s: %q", name, c.Args)
		}
	}
}

// Values that make no sense are refused, with a line that says why.
func TestMisuse(t *testing.T) {
	for want, values := range map[string]map[string]any{
		"mode is deployment or daemonset": {"mode": "statefulset"},
		"set clientCA.cluster or":         {"clientCA": map[string]any{"impersonate": true}},
		"set one of them":                 {"clientCA": map[string]any{"cluster": true, "configMapName": "client-ca"}},
	} {
		if _, err := render(t, values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", values, err)
		}
	}
}
