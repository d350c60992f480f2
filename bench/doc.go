// Command bench runs Tarn and client-go through the same scenarios, side by
// side, and prints one table.
//
// A scenario is code against the API that both have in common, so that nothing
// but the import path differs between the contenders. Each contender runs each
// scenario in a process of its own: what one leaves on the heap, in the garbage
// collector's pacing or in package variables cannot colour the other's figures.
//
//	go run .                    all scenarios
//	go run . -run 'fanout'      those whose name matches
//	go run . -count 5           medians of five rounds
//	go run . -list              what each scenario does
//
// It needs a Unix: CPU time comes from getrusage.
package main
