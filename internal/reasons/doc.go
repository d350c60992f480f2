// Package reasons tells what an error of the Kubernetes API means to the engine:
// whether a version has expired, the server is busy, nobody answers, and so on.
//
// It is for those who write a [tarn.Source] over the API, as packages kube and
// cache do: each reads the wire in its own way and meets the same errors.
package reasons
