// Package deploy proves what is in its folder: the Helm chart and the manifests rendered from
// it, the Dockerfile, the dashboard for Grafana and the alerts for Prometheus. It is a module
// of its own, so that no other one requires Helm and Prometheus.
package deploy
