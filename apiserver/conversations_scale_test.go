package apiserver

// scaling sees workloads, and custom resources that say how, as scales.
func scaling() []call {
	const (
		deployments = "/apis/apps/v1/namespaces/talk/deployments"
		definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
		ponds       = "/apis/scale.example.org/v1/namespaces/talk/ponds"
		template    = `"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"c","image":"i"}]}}`
	)
	scale := func(title, method, kind, body string) call {
		return call{title: title, method: method, path: deployments + "/web/scale", kind: kind, body: body}
	}
	return []call{newNamespace,
		{title: "deployment", accept: asPart, method: "POST", path: deployments, save: "d",
			body: `{"metadata":{"name":"web","labels":{"l":"x"},"annotations":{"a":"b"}},"spec":{"replicas":3,"selector":{"matchLabels":{"app":"web"},"matchExpressions":[{"key":"tier","operator":"DoesNotExist"}]},` + template + `}}`},
		get("scale", deployments+"/web/scale"),
		scale("wider", "PUT", "", `{"metadata":{"name":"web","namespace":"talk"},"spec":{"replicas":5}}`),
		scale("the same", "PUT", "", `{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"web"},"spec":{"replicas":5}}`),
		scale("by merge patch", "PATCH", merge, `{"spec":{"replicas":4}}`),
		scale("by JSON patch", "PATCH", jsonType, `[{"op":"replace","path":"/spec/replicas","value":2}]`),
		scale("by strategic patch", "PATCH", smart, `{"spec":{"replicas":1}}`),
		{title: "dry", method: "PATCH", path: deployments + "/web/scale?dryRun=All", kind: merge, body: `{"spec":{"replicas":9}}`},
		{title: "generation", method: "GET", path: deployments + "/web", accept: asPart},
		scale("to nothing", "PATCH", merge, `{"spec":{"replicas":0}}`),
		scale("without replicas", "PUT", "", `{"metadata":{"name":"web"}}`),
		scale("less than nothing", "PATCH", merge, `{"spec":{"replicas":-1}}`),
		scale("at an old version", "PUT", "", `{"metadata":{"name":"web","resourceVersion":"$d"},"spec":{"replicas":5}}`),
		loose(scale("of another uid", "PUT", "", `{"metadata":{"name":"web","uid":"x"},"spec":{"replicas":5}}`)),
		scale("of another name", "PUT", "", `{"metadata":{"name":"other"},"spec":{"replicas":5}}`),
		scale("of no name", "PUT", "", `{"spec":{"replicas":5}}`),
		scale("of another namespace", "PUT", "", `{"metadata":{"name":"web","namespace":"other"},"spec":{"replicas":5}}`),
		scale("deleted", "DELETE", "", ""),
		get("of nothing", deployments+"/none/scale"),
		get("of what does not scale", configs+"/none/scale"),
		get("of a daemon set", "/apis/apps/v1/namespaces/talk/daemonsets/none/scale"),
		{title: "definition", loose: true, method: "POST", path: definitions, body: `{"metadata":{"name":"ponds.scale.example.org"},"spec":{"group":"scale.example.org","scope":"Namespaced",
			"names":{"plural":"ponds","kind":"Pond"},"versions":[{"name":"v1","served":true,"storage":true,
			"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"fish":{"type":"integer"}}},"status":{"type":"object","properties":{"fish":{"type":"integer"},"who":{"type":"string"}}}}}},
			"subresources":{"status":{},"scale":{"specReplicasPath":".spec.fish","statusReplicasPath":".status.fish","labelSelectorPath":".status.who"}}}]}}`},
		{title: "pond", settle: true, method: "POST", path: ponds, save: "p", body: `{"kind":"Pond","apiVersion":"scale.example.org/v1","metadata":{"name":"small"},"spec":{"fish":2}}`},
		get("scale of a custom one", ponds+"/small/scale"),
		{title: "status of a custom one", method: "PATCH", path: ponds + "/small/status", kind: merge, body: `{"status":{"fish":1,"who":"fish=yes"}}`},
		{title: "more fish", method: "PATCH", path: ponds + "/small/scale", kind: merge, body: `{"spec":{"replicas":7}}`},
		loose(call{title: "strategically", method: "PATCH", path: ponds + "/small/scale", kind: smart, body: `{"spec":{"replicas":7}}`}),
		get("the pond", ponds+"/small"),
		loose(call{title: "empty pond", method: "POST", path: ponds, body: `{"kind":"Pond","apiVersion":"scale.example.org/v1","metadata":{"name":"empty"}}`}),
		loose(get("scale of an empty one", ponds+"/empty/scale")),
		get("resources", "/apis/scale.example.org/v1"),
	}
}

// secrets can be written as text.
func secrets() []call {
	const secrets = "/api/v1/namespaces/talk/secrets"
	return []call{newNamespace,
		{title: "created", method: "POST", path: secrets, save: "s", body: `{"metadata":{"name":"s"},"data":{"a":"b25l","b":"dHdv"},"stringData":{"b":"three","c":"four"}}`},
		get("read", secrets+"/s"),
		{title: "patched", method: "PATCH", path: secrets + "/s", kind: merge, body: `{"stringData":{"a":"five"}}`},
		{title: "patched strategically", method: "PATCH", path: secrets + "/s", kind: smart, body: `{"stringData":{"d":"six"},"data":{"b":null}}`},
		{title: "replaced", method: "PUT", path: secrets + "/s", body: `{"metadata":{"name":"s"},"stringData":{"only":"this"}}`},
		{title: "emptied", method: "PUT", path: secrets + "/s", body: `{"metadata":{"name":"s"},"stringData":{}}`},
	}
}
