// Package storetest checks that a store keeps the contract of [tarn.Store] and
// [tarn.Reader]. Call [Run] from a test of the package that has the store.
//
// Each line of the contract is a subtest, named by what it demands, so that the
// list of names is the contract in short and a failure names what was broken.
package storetest
