// Package tarn keeps a live local copy of a remote collection.
//
// Data flows one way: a [Source] is listed and watched by a [Reflector], which
// writes a [Store]; a [Replica] joins the three and lets any number of
// subscribers follow the store's changes, each at its own pace.
//
// This package is the vocabulary and the engine. It is independent of protocol,
// storage and Kubernetes: package memory holds the content, package kube reads
// from API servers, and package cache has the interfaces of client-go.
package tarn
