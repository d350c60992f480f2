// Package framework gives tests a source to list and watch that they fill
// themselves. It is client-go's k8s.io/client-go/tools/cache/testing under this
// module's path, so that a test needs to change nothing but the import.
package framework
