// Package wiretest holds what the tests of several packages of kube/wire need: pods, and
// a choice of cases that suits the race detector.
//
// It imports nothing of this module, and only tests import it.
package wiretest
