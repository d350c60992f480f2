package apiserver

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// kubectl runs the program that the environment names, against a server.
type kubectl struct {
	t                testing.TB
	program          string
	home, kubeconfig string
}

func newKubectl(t testing.TB, server *Server) *kubectl {
	t.Helper()
	program := os.Getenv("KUBECTL")
	if program == "" {
		t.Skip("set KUBECTL to the path of a kubectl")
	}
	config, err := server.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	k := &kubectl{t: t, program: program, home: t.TempDir()}
	k.kubeconfig = filepath.Join(k.home, "kubeconfig")
	if err := os.WriteFile(k.kubeconfig, config, 0o600); err != nil {
		t.Fatal(err)
	}
	return k
}

func (k *kubectl) command(input string, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	k.t.Cleanup(cancel)
	command := exec.CommandContext(ctx, k.program, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+k.kubeconfig, "HOME="+k.home)
	command.Stdin = strings.NewReader(input)
	return command
}

// run returns what kubectl says, and fails the test if it fails.
func (k *kubectl) run(input string, args ...string) string {
	k.t.Helper()
	output, err := k.command(input, args...).CombinedOutput()
	if err != nil {
		k.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, output)
	}
	return string(output)
}

func (k *kubectl) says(want string, input string, args ...string) {
	k.t.Helper()
	if got := strings.TrimSpace(k.run(input, args...)); !strings.Contains(got, want) {
		k.t.Errorf("kubectl %s says\n%s\nwant\n%s", strings.Join(args, " "), got, want)
	}
}

// follow starts a kubectl that does not end by itself. The expected line must come.
func (k *kubectl) follow(args ...string) (await func(want string)) {
	k.t.Helper()
	command := k.command("", args...)
	var seen bytes.Buffer
	reader, writer := io.Pipe()
	command.Stdout, command.Stderr = writer, writer
	if err := command.Start(); err != nil {
		k.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = command.Wait() // its output says why
		_ = writer.Close()
	}()
	k.t.Cleanup(func() {
		_ = command.Process.Kill()
		_, _ = io.Copy(io.Discard, reader)
		<-ended
	})
	return func(want string) {
		k.t.Helper()
		part := make([]byte, 4096)
		for !strings.Contains(seen.String(), want) {
			n, err := reader.Read(part)
			if err != nil {
				k.t.Fatalf("kubectl %s ended after\n%s\nwant\n%s", strings.Join(args, " "), seen.String(), want)
			}
			seen.Write(part[:n])
		}
	}
}

const definitionFile = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {plural: widgets, kind: Widget, shortNames: [wd], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size}
    - {name: Phase, type: string, jsonPath: .status.phase}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer, default: 3}}}
          status: {type: object, properties: {phase: {type: string}}}
`

func TestKubectl(t *testing.T) {
	server, err := Start(Options{TLS: true, Tokens: []string{"secret"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	k := newKubectl(t, server)

	k.says("Server Version: v1.36", "", "version")
	k.says("ok", "", "get", "--raw", "/readyz")
	k.says("deploy", "", "api-resources")
	k.says("namespace/shop created", "", "create", "namespace", "shop")
	k.says("configmap/a created", "", "create", "configmap", "a", "--from-literal=k=v", "-n", "shop")
	k.says("deployment.apps/web created", "", "create", "deployment", "web", "--image=nginx", "--replicas=3", "-n", "shop")
	k.says("web    0/3     0            0", "", "get", "deploy", "-n", "shop")
	k.says("service/web created", "", "create", "service", "clusterip", "web", "--tcp=80:80", "-n", "shop")
	k.says("web    ClusterIP", "", "get", "svc", "-n", "shop")

	await := k.follow("get", "configmaps", "-n", "shop", "-w")
	await("a      1      ")
	k.says("configmap/a labeled", "", "label", "configmap", "a", "l=x", "-n", "shop")
	k.says("configmap/b created", "", "create", "configmap", "b", "-n", "shop")
	await("b      0      ")
	k.says("configmap/a annotated", "", "annotate", "configmap", "a", "note=this", "-n", "shop")
	k.says("configmap/a patched", "", "patch", "configmap", "a", "-n", "shop", "-p", `{"data":{"x":"y"}}`)
	await("a      2      ")
	k.says("configmap/a patched", "", "patch", "configmap", "a", "-n", "shop", "--type=json", "-p", `[{"op":"remove","path":"/data/x"}]`)
	k.says("configmap/a patched", "", "patch", "configmap", "a", "-n", "shop", "--type=merge", "-p", `{"data":{"z":"y"}}`)
	k.says("note: this", "", "get", "configmap", "a", "-n", "shop", "-o", "yaml")
	k.says("a", "", "get", "configmap", "-l", "l=x", "-n", "shop", "-o", "name")
	k.says("a", "", "get", "configmap", "--field-selector", "metadata.name=a", "-A", "--no-headers")

	k.says("created", definitionFile, "create", "-f", "-")
	k.says("condition met", "", "wait", "--for=condition=Established", "crd/widgets.example.org")
	k.says("widget.example.org/w created", "apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: w, namespace: shop}\nspec: {}\n", "create", "-f", "-")
	k.says("w      3", "", "get", "wd", "-n", "shop")
	k.says("patched", "", "patch", "widget", "w", "-n", "shop", "--type=merge", "--subresource=status", "-p", `{"status":{"phase":"Ready"}}`)
	k.says("w      3      Ready", "", "get", "widgets", "-n", "shop")
	k.says("condition met", "", "wait", "--for=jsonpath={.status.phase}=Ready", "widget/w", "-n", "shop")
	k.says("widget.example.org/w", "", "get", "all", "-n", "shop")
	if output, err := k.command("apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: x}\nspec: {sise: 3}\n", "create", "-f", "-").CombinedOutput(); err == nil || !strings.Contains(string(output), `unknown field "spec.sise"`) {
		t.Errorf("an unknown field is taken: %s", output)
	}

	k.says("image updated", "", "set", "image", "deployment/web", "nginx=nginx:2", "-n", "shop")
	k.says("yes", "", "auth", "can-i", "delete", "pods")
	k.says("Name:         a", "", "describe", "configmap", "a", "-n", "shop")

	for path, want := range map[string]string{
		"deployments.spec.template.spec.containers.image": "Container image name", "widgets.spec": "size",
		"crd.spec.versions.schema.openAPIV3Schema": "additionalProperties", "hpa": "autoscaling",
	} {
		k.says(want, "", "explain", path)
	}
	kubectlApply(k)
	kubectlScale(k)
	kubectlShows(k)
	kubectlGone(k)

	k.says(`configmap "b" deleted`, "", "delete", "configmap", "b", "-n", "shop")
	k.says(`"shop" deleted`, "", "delete", "namespace", "shop")
	if output, err := k.command("", "get", "namespace", "shop").CombinedOutput(); err == nil || !strings.Contains(string(output), "NotFound") {
		t.Errorf("the namespace is still there: %s", output)
	}
	k.says("deleted", "", "delete", "crd", "widgets.example.org")
	if output, err := k.command("", "get", "widgets").CombinedOutput(); err == nil || !strings.Contains(string(output), "could not find the requested resource") {
		t.Errorf("widgets are still served: %s", output)
	}
}

// kubectl reaches a server without tokens without a prompt, with TLS and without.
func TestKubectlIsAskedForNothing(t *testing.T) {
	for _, secure := range []bool{false, true} {
		server, err := Start(Options{TLS: secure})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(server.Close)
		newKubectl(t, server).says("namespace/default", "", "get", "namespaces", "-o", "name")
	}
}

const applied = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: applied, namespace: shop}
spec:
  selector: {matchLabels: {app: applied}}
  template:
    metadata: {labels: {app: applied}}
    spec:
      containers:
      - {name: main, image: main:1, env: [{name: A, value: a}, {name: B, value: b}]}
      - {name: side, image: side:1}
`

// kubectlApply: what is applied is merged with what others did, by key in lists,
// and what is no longer applied is taken out, on built-in and custom resources.
func kubectlApply(k *kubectl) {
	k.t.Helper()
	k.says("deployment.apps/applied created", applied, "apply", "-f", "-")
	k.says("deployment.apps/applied unchanged", applied, "apply", "-f", "-")
	k.says("env updated", "", "set", "env", "deployment/applied", "-n", "shop", "-c", "main", "C=c")
	changed := strings.NewReplacer("main:1", "main:2", "{name: A, value: a}, ", "", "\n      - {name: side, image: side:1}", "").Replace(applied)
	k.says("deployment.apps/applied configured", changed, "apply", "-f", "-")
	if got := k.run("", "get", "deployment", "applied", "-n", "shop", "-o", "jsonpath={.spec.template.spec.containers[*].image} {.spec.template.spec.containers[0].env[*].name}"); got != "main:2 B C" {
		k.t.Errorf("after the second apply: %s", got)
	}
	k.says("condition met", "", "wait", "--for=jsonpath={.spec.replicas}=1", "deployment/applied", "-n", "shop")
	widget := "apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: applied, namespace: shop, labels: {l: x}}\nspec: {size: 4}\n"
	k.says("widget.example.org/applied created", widget, "apply", "-f", "-")
	k.says("widget.example.org/applied configured", strings.Replace(widget, ", labels: {l: x}", "", 1), "apply", "-f", "-")
	if got := k.run("", "get", "widgets", "-n", "shop", "-l", "l=x", "-o", "name"); got != "" {
		k.t.Errorf("a label that is no longer applied is still there: %s", got)
	}
	if output, err := k.command(applied, "apply", "--server-side", "-f", "-").CombinedOutput(); err == nil || !strings.Contains(string(output), "does not do server-side apply") {
		k.t.Errorf("server-side apply: %s", output)
	}
}

// kubectlScale: replicas are changed without knowing the kind, and rollouts are
// followed by whatever somebody writes into the status.
func kubectlScale(k *kubectl) {
	k.t.Helper()
	k.says("deployment.apps/web scaled", "", "scale", "deployment", "web", "--replicas=5", "-n", "shop")
	k.says("5 0", "", "get", "deployment", "web", "--subresource=scale", "-n", "shop", "-o", "jsonpath={.spec.replicas} {.status.replicas}")
	k.says("web    5         0           ", "", "get", "deployment", "web", "--subresource=scale", "-n", "shop")
	if output, err := k.command("", "scale", "deployment", "web", "--replicas=7", "--current-replicas=3", "-n", "shop").CombinedOutput(); err == nil || !strings.Contains(string(output), "Expected replicas to be 3, was 5") {
		k.t.Errorf("scaled under a wrong condition: %s", output)
	}
	await := k.follow("rollout", "status", "deployment/web", "-n", "shop")
	await("Waiting for deployment")
	generation := k.run("", "get", "deployment", "web", "-n", "shop", "-o", "jsonpath={.metadata.generation}")
	k.says("patched", "", "patch", "deployment", "web", "-n", "shop", "--subresource=status", "--type=merge", "-p",
		`{"status":{"observedGeneration":`+generation+`,"replicas":5,"updatedReplicas":5,"availableReplicas":5,"readyReplicas":5}}`)
	await("successfully rolled out")
	k.says("deployment.apps/web restarted", "", "rollout", "restart", "deployment/web", "-n", "shop")
	k.says("Replicas:               5 desired | 5 updated | 5 total | 5 available", "", "describe", "deployment", "web", "-n", "shop")
}

// kubectlShows: the tables that people are used to.
func kubectlShows(k *kubectl) {
	k.t.Helper()
	k.says("autoscaled", "", "autoscale", "deployment", "web", "--min=1", "--max=3", "--cpu=50%", "-n", "shop")
	k.says("web    Deployment/web   cpu: <unknown>/50%   1         3         0          ", "", "get", "hpa", "-n", "shop")
	k.says("created", "", "create", "cronjob", "c", "--image=x", "--schedule=* * * * *", "-n", "shop")
	k.says("c      * * * * *   <none>     False     0        <none>          ", "", "get", "cronjobs", "-n", "shop")
	k.says("created", "", "create", "job", "j", "--image=x", "-n", "shop")
	k.says("j      Running   0/1                      ", "", "get", "jobs", "-n", "shop")
	k.says("created", "", "create", "pdb", "p", "--selector=app=web", "--min-available=1", "-n", "shop")
	k.says("p      1               N/A               0                     ", "", "get", "pdb", "-n", "shop")
	k.says("created", "", "create", "ingress", "i", "--rule=a.b/c=web:80", "-n", "shop")
	k.says("i      <none>   a.b               80      ", "", "get", "ingress", "-n", "shop")
	k.says("created", "", "create", "secret", "generic", "s", "--from-literal=k=v", "-n", "shop")
	k.says("patched", "", "patch", "secret", "s", "-n", "shop", "-p", `{"stringData":{"t":"text"}}`)
	k.says("dGV4dA==", "", "get", "secret", "s", "-n", "shop", "-o", "jsonpath={.data.t}{.stringData}")
}

// kubectlGone: deletes by file, by label, and with a finalizer, are waited for.
func kubectlGone(k *kubectl) {
	k.t.Helper()
	k.says(`"applied" deleted`, applied, "delete", "-f", "-")
	k.says("created", "", "create", "configmap", "c", "-n", "shop")
	k.says("patched", "", "patch", "configmap", "c", "-n", "shop", "--type=merge", "-p", `{"metadata":{"finalizers":["x.io/y"],"labels":{"gone":"soon"}}}`)
	k.says(`"c" deleted`, "", "delete", "configmap", "-l", "gone=soon", "-n", "shop", "--wait=false")
	await := k.follow("wait", "--for=delete", "configmap/c", "-n", "shop", "-v=6")
	await("watch=true") // one that begins to wait later finds nothing to wait for
	k.says("patched", "", "patch", "configmap", "c", "-n", "shop", "--type=json", "-p", `[{"op":"remove","path":"/metadata/finalizers"}]`)
	await("condition met")
}
