// Command bench runs Tarn, client-go and controller-runtime through the same
// situations, side by side, and prints what each costs.
//
// Scenarios are code against the API that client-go and Tarn have in common, so
// that nothing but the import path differs. Races have contenders copy the same
// pods from the same API server, a replay of real ones in a process of its own
// (package replay), each in the way that its users would (package contender);
// then they follow bursts of updates and read. Trials put contenders to the same
// work with no server around: stores are written and read, fields are found.
//
// Every contender runs every time in its own process: what one leaves on the heap,
// in the garbage collector's pacing or in package variables cannot affect another's
// figures. All have the same environment. They run in turn, round by
// round, and what the others are compared with runs twice in each round: the
// distance of the two is the noise. A ratio is the median of those of the rounds, in
// each to the mean of both. CPU time is that of the contender's process, garbage
// collection included, and of no other.
//
//	go run .                       what the documents show, with 1,000 to 30,000 objects
//	go run . -docs ..              the same, and writes it into README.md and docs
//	go run . -quick -run protobuf  one race, a few minutes
//	go run . -run 'fanout|typed'   scenarios, trials and races whose names match
//	go run . -run '^store'         the store alone
//	go run . -only 'kube|^client-go$' -run protobuf
//	go run . -n 1000,100000        other sizes
//	go run . -out folder           results and plots in a folder
//	go run . -profiles folder      profiles of every contender in races
//	go run . -list -run .          everything that there is
//
// results.json has every figure of every round, the plots show memory and time
// against the number of objects. The documents of the repository are made from
// docs/bench/results.json alone (docs.go, page*.go): all their figures are from one
// run, and a test fails when they are not.
//
// It needs a Unix: CPU time comes from getrusage. The growth of the peak memory
// needs Linux; elsewhere it is left out.
package main
