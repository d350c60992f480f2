package e2e

import (
	"bytes"
	"os/exec"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// Kubectl runs kubectl as the administrator and returns what it printed.
func (c *Cluster) Kubectl(arguments ...string) string {
	c.t.Helper()
	kubectl := exec.Command(binary(c.t, "kubectl"), append([]string{
		"--kubeconfig=" + c.kubeconfig,
		"--cache-dir=" + filepath.Join(c.dir, "kubectl-cache"),
	}, arguments...)...)
	var complaints bytes.Buffer
	kubectl.Stderr = &complaints
	output, err := kubectl.Output()
	if err != nil {
		c.t.Fatalf("kubectl %q: %v\n%s", arguments, err, complaints.Bytes())
	}
	return string(output)
}

// writeKubeconfig writes a file for programs who may do everything, and returns
// its path.
func (e *Endpoint) writeKubeconfig(dir string) string {
	e.t.Helper()
	const name = "e2e"
	config := api.NewConfig()
	config.Clusters[name] = &api.Cluster{Server: "https://" + e.address, CertificateAuthorityData: e.authority}
	config.AuthInfos[name] = &api.AuthInfo{Token: AdminToken}
	config.Contexts[name] = &api.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	path := filepath.Join(dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		e.t.Fatal(err)
	}
	return path
}
