package main

import (
	"slices"

	"github.com/tarnproject/tarn/bench/contender"
	"github.com/tarnproject/tarn/bench/podset"
)

// made finds the entry's contender, which a test knows to be there.
func (e entry) made() contender.Contender {
	c, _ := contender.ByName(e.contender)
	return c
}

// fromServer is what every way in that decodes for itself is to reach against
// client-go, with metadata and pointed-to numbers that are each object's own.
var fromServer = map[string]float64{
	heapPerObject: 0.27, objectsPerObject: 0.12, peakMemory: 1 / 2.5,
	cpuPerObject: 1 / 4., cpuPerUpdate: 1 / 4., gcTime: 1 / 3.,
}

// dropIn is the same for informers, whose stores hold interfaces.
var dropIn = map[string]float64{
	heapPerObject: 0.29, objectsPerObject: 0.12, peakMemory: 1 / 2.5,
	cpuPerObject: 1 / 4., cpuPerUpdate: 1 / 4., gcTime: 1 / 3.,
}

// untyped is the same for objects without a Go type.
var untyped = map[string]float64{cpuPerObject: 1 / 6., heapPerObject: 1 / 6., objectsPerObject: 1 / 12.}

// notWorse is what is to be reached where there is nothing to share.
var notWorse = map[string]float64{cpuPerObject: 0.8, heapPerObject: 0.95}

var races = []race{
	{
		name: "protobuf", pods: podset.ReplicaSets, scaled: true,
		doc: "Pods in protobuf.",
		entries: append(
			field("client-go", "client-go list", "controller-runtime", "tarn cache", "tarn cache list", "tarn cache GOGC=200", "tarn cache REST client", "tarn informers", "tarn informers clientset", "tarn kube", "tarn kube list"),
			entry{"tarn ctrlcache", "tarn ctrlcache", "controller-runtime"},
		),
		targets: slices.Concat(
			limits("tarn kube", "client-go", fromServer),
			limits("tarn informers", "client-go", dropIn),
			limits("tarn informers clientset", "client-go", dropIn),
			limits("tarn cache REST client", "client-go", dropIn),
			limits("tarn ctrlcache", "controller-runtime", map[string]float64{heapPerObject: 0.29, objectsPerObject: 0.12}),
			limits("tarn kube", "client-go list", map[string]float64{cpuPerObject: 1 / 2.}),
			limits("tarn kube list", "client-go list", map[string]float64{cpuPerObject: 1 / 2.}),
			limits("tarn cache", "client-go", map[string]float64{heapPerObject: 1 / 3.5, cpuPerObject: 1.15}),
			limits("tarn cache GOGC=200", "client-go", map[string]float64{peakMemory: 0.6, cpuPerUpdate: 1.15}),
		),
	},
	{
		name: "typed", pods: podset.ReplicaSets, scaled: true,
		doc:     "The same pods as a custom resource with a Go type, in JSON.",
		entries: field("client-go typed", "tarn typed"),
		targets: limits("tarn typed", "client-go typed", map[string]float64{cpuPerObject: 1 / 6., heapPerObject: 0.27}),
	},
	{
		name: "dynamic", pods: podset.ReplicaSets, scaled: true,
		doc:     "The same pods as a custom resource without a Go type, in JSON.",
		entries: field("client-go dynamic", "tarn dynamicinformer", "tarn dynamicinformer client", "tarn dynamic"),
		targets: slices.Concat(
			limits("tarn dynamic", "client-go dynamic", untyped),
			limits("tarn dynamicinformer", "client-go dynamic", untyped),
			limits("tarn dynamicinformer client", "client-go dynamic", untyped),
		),
	},
	{
		name: "disk", pods: podset.ReplicaSets, largestOnly: true, targetSize: 100_000, paced: true,
		doc:     "Pods in protobuf, kept on disk too, after a restart; a thousand updates a second.",
		entries: field("client-go", "tarn kube", "tarn disk first", "tarn disk", "tarn disk only first", "tarn disk only"),
		targets: slices.Concat(
			limits("tarn disk", "client-go", map[string]float64{syncTime: 1 / 5., cpuPerUpdate: 2}),
			limits("tarn disk only", "client-go", map[string]float64{syncTime: 1 / 5.}),
			within("tarn disk first", map[string]float64{diskSize: 1.2}),
			within("tarn disk only first", map[string]float64{diskSize: 1.2}),
		),
	},
	productionRace,
	{
		name: "metadata", pods: podset.ReplicaSets, extra: true,
		doc:     "The metadata of the same pods, in protobuf.",
		entries: field("client-go metadata", "tarn metadata"),
	},
	{
		name: "distinct", pods: podset.Distinct,
		doc:     "Pods in protobuf that have nothing in common: each has its own names, commands, environment, labels and annotations.",
		entries: field("client-go", "tarn cache", "tarn kube"),
		targets: limits("tarn kube", "client-go", notWorse),
	},
	{
		name: "distinct-typed", pods: podset.Distinct, extra: true,
		doc:     "Pods that have nothing in common, as a custom resource with a Go type.",
		entries: field("client-go typed", "tarn typed"),
		targets: limits("tarn typed", "client-go typed", notWorse),
	},
	{
		name: "distinct-dynamic", pods: podset.Distinct, extra: true,
		doc:     "Pods that have nothing in common, as a custom resource without a Go type.",
		entries: field("client-go dynamic", "tarn dynamic"),
		targets: limits("tarn dynamic", "client-go dynamic", notWorse),
	},
}
