// Package reasons classifies errors of the Kubernetes API for the engine: the version
// has expired, the server is busy, the connection is refused, and so on.
//
// It is for implementations of [tarn.Source] over the API, as in packages kube and
// cache: each reads the wire in its own way and gets the same errors.
package reasons
