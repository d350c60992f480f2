package apiserver

import "fmt"

const (
	quotas   = "/api/v1/namespaces/talk/resourcequotas"
	classes  = "/apis/networking.k8s.io/v1/ingressclasses"
	configs  = "/api/v1/namespaces/talk/configmaps"
	asTable  = "application/json;as=Table;v=v1;g=meta.k8s.io"
	asPart   = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
	asParts  = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
	merge    = "application/merge-patch+json"
	jsonType = "application/json-patch+json"
	smart    = "application/strategic-merge-patch+json"
)

func loose(c call) call {
	c.loose = true
	return c
}

func get(title, path string) call { return call{title: title, method: "GET", path: path} }

func configMap(name string, more string) call {
	return call{title: "create " + name, method: "POST", path: configs, save: name,
		body: fmt.Sprintf(`{"metadata":{"name":%q%s}}`, name, more)}
}

var newNamespace = call{title: "namespace", method: "POST", path: "/api/v1/namespaces", save: "ns", body: `{"metadata":{"name":"talk"}}`}

var conversations = map[string][]call{
	"lists":   lists(),
	"watches": watches(),
	"writes":  writes(),
	"deletes": deletes(),
	"patches": patches(),
	"custom":  custom(),
	"errors":  mistakes(),
	"many":    versions(),
	"bound":   assignments(),
	"filled":  defaults(),
	"scaled":  scaling(),
	"secrets": secrets(),
	"unusual": unusual(),
}

func lists() []call {
	calls := []call{newNamespace, configMap("a", `,"labels":{"l":"x"}`), configMap("b", ""), configMap("c", `,"labels":{"l":"x"}`),
		{title: "update a", method: "PATCH", path: configs + "/a", kind: merge, save: "d", body: `{"data":{"k":"v"}}`},
	}
	for _, match := range []string{"", "Exact", "NotOlderThan", "Bogus"} {
		for _, version := range []string{"", "0", "$a", "$d", "$d+5000", "x", "-1"} {
			for _, limit := range []string{"", "1"} {
				path := configs + "?labelSelector=l&resourceVersion=" + version + "&resourceVersionMatch=" + match
				if limit != "" {
					path += "&limit=" + limit
				}
				calls = append(calls, get("list rv="+version+" match="+match+" limit="+limit, path))
			}
		}
	}
	return append(calls,
		call{title: "a change before the pages", method: "PATCH", path: configs + "/c", kind: merge, body: `{"data":{"k":"v"}}`},
		call{title: "first page", method: "GET", path: configs + "?limit=1", save: "page"},
		call{title: "a change between the pages", method: "PATCH", path: configs + "/b", kind: merge, save: "e", body: `{"data":{"k":"v"}}`},
		call{title: "second page", method: "GET", path: configs + "?limit=1&continue=$page.continue", save: "pagetwo"},
		call{title: "third page", method: "GET", path: configs + "?limit=1&continue=$pagetwo.continue"},
		get("continue with a version", configs+"?limit=1&continue=$page.continue&resourceVersion=$a"),
		get("continue with version 0", configs+"?limit=1&continue=$page.continue&resourceVersion=0"),
		get("continue with match", configs+"?limit=1&continue=$page.continue&resourceVersionMatch=Exact&resourceVersion=$a"),
		get("continue without limit", configs+"?continue=$page.continue"),
		get("bad continue", configs+"?limit=1&continue=nonsense"),
		get("bad limit", configs+"?limit=x"),
		get("empty limit", configs+"?limit="),
		get("more that do not match", configs+"?labelSelector=l&limit=2"),
		get("more that do not match, after the first", configs+"?fieldSelector=metadata.name%3Da&limit=1"),
		get("negative limit", configs+"?limit=-1"),
		get("bad label selector", configs+"?labelSelector=a+b+c"),
		get("bad field selector", configs+"?fieldSelector=a"),
		get("unknown field", configs+"?fieldSelector=data.k%3Dv"),
		get("field by name", configs+"?fieldSelector=metadata.name%3Da"),
		get("field not name", configs+"?fieldSelector=metadata.name!%3Da"),
		get("field by name, version of the past", configs+"?fieldSelector=metadata.name%3Da&resourceVersion=$a&resourceVersionMatch=Exact"),
		get("all namespaces", "/api/v1/configmaps?labelSelector=l"),
		get("all namespaces, field", "/api/v1/configmaps?fieldSelector=metadata.namespace%3Dtalk,metadata.name%3Db"),
		get("missing namespace", "/api/v1/namespaces/nowhere/configmaps"),
		get("a read of the future", configs+"/a?resourceVersion=$e+5000"),
		get("a read of the past", configs+"/a?resourceVersion=$a"),
		get("a read of any time", configs+"/a?resourceVersion=0"),
		get("pod fields", "/api/v1/namespaces/talk/pods?fieldSelector=spec.nodeName%3Da,status.phase%3DRunning,spec.restartPolicy%3DAlways,spec.schedulerName%3Da,spec.serviceAccountName%3Da,spec.hostNetwork%3Dfalse,status.podIP%3Da,status.nominatedNodeName%3Da"),
		get("pod field that is none", "/api/v1/namespaces/talk/pods?fieldSelector=spec.other%3Da"),
		call{title: "as a table", method: "GET", path: configs + "?fieldSelector=metadata.name%3Da", accept: asTable},
		call{title: "as partial metadata", method: "GET", path: configs, accept: asParts},
		call{title: "one as partial metadata", method: "GET", path: configs + "/a", accept: asPart},
		call{title: "as something else", method: "GET", path: configs + "/a", accept: "application/json;as=Other;v=v1;g=meta.k8s.io"},
		call{title: "as an image", method: "GET", path: configs + "/a", accept: "image/png"},
	)
}

func watches() []call {
	watch := func(title, query string) call { return get(title, configs+"?watch=1&timeoutSeconds=1&"+query) }
	return []call{newNamespace, configMap("a", `,"labels":{"l":"x"}`), configMap("b", ""), configMap("c", ""),
		{title: "b gets the label", method: "PATCH", path: configs + "/b", kind: merge, save: "d", body: `{"metadata":{"labels":{"l":"x"}}}`},
		{title: "a loses the label", method: "PATCH", path: configs + "/a", kind: merge, save: "e", body: `{"metadata":{"labels":{"l":null}}}`},
		{title: "c goes", method: "DELETE", path: configs + "/c"},
		watch("from the beginning", "resourceVersion=$ns"),
		watch("from a on", "resourceVersion=$a"),
		watch("with a selector", "resourceVersion=$a&labelSelector=l"),
		watch("with a field", "resourceVersion=$a&fieldSelector=metadata.name%3Db"),
		watch("unset", ""),
		watch("zero", "resourceVersion=0"),
		watch("future", "resourceVersion=$e+5000"),
		watch("bad version", "resourceVersion=x"),
		watch("long ago", "resourceVersion=1"),
		watch("match without initial events", "resourceVersion=$a&resourceVersionMatch=NotOlderThan"),
		watch("initial events without match", "sendInitialEvents=true&allowWatchBookmarks=true"),
		watch("initial events with exact", "sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=Exact"),
		watch("initial events without bookmarks", "sendInitialEvents=true&resourceVersionMatch=NotOlderThan"),
		watch("initial events false", "sendInitialEvents=false&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=$d"),
		watch("initial events false, unset", "sendInitialEvents=false&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"),
		watch("initial events", "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&labelSelector=l"),
		watch("initial events at zero", "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=0&labelSelector=l"),
		watch("initial events of the future", "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=$e+5000"),
		watch("with limit", "resourceVersion=$d&limit=1"),
		watch("with continue", "resourceVersion=$d&continue=abc"),
		get("list with initial events", configs+"?sendInitialEvents=true"),
		{title: "as a table", method: "GET", path: configs + "?watch=1&timeoutSeconds=1&resourceVersion=$d", accept: asTable},
		{title: "as partial metadata", method: "GET", path: configs + "?watch=1&timeoutSeconds=1&resourceVersion=$d", accept: asPart},
		get("by the old path", "/api/v1/watch/namespaces/talk/configmaps?timeoutSeconds=1&resourceVersion=$d"),
		get("one by name", configs+"/a?watch=1&timeoutSeconds=1&resourceVersion=$a"),
		get("bad timeout", configs+"?watch=1&timeoutSeconds=x"),
		get("a single bool", configs+"?watch=maybe&timeoutSeconds=1"),
	}
}

func writes() []call {
	post := func(title, body string) call { return call{title: title, method: "POST", path: configs, body: body} }
	put := func(title, name, body string) call {
		return call{title: title, method: "PUT", path: configs + "/" + name, body: body}
	}
	return []call{newNamespace, configMap("a", `,"labels":{"l":"x"}`),
		post("once more", `{"metadata":{"name":"a"}}`),
		post("no name", `{"metadata":{}}`),
		post("bad name", `{"metadata":{"name":"A_b"}}`),
		post("generated name", `{"metadata":{"generateName":"gen-"}}`),
		post("with a version", `{"metadata":{"name":"v","resourceVersion":"5"}}`),
		post("with a uid", `{"metadata":{"name":"u","uid":"5","creationTimestamp":"2001-01-01T00:00:00Z","generation":7,"selfLink":"x","deletionTimestamp":"2001-01-01T00:00:00Z"}}`),
		post("another namespace", `{"metadata":{"name":"o","namespace":"other"}}`),
		post("bad label", `{"metadata":{"name":"l","labels":{"a b":"c d"}}}`),
		post("bad annotation", `{"metadata":{"name":"l","annotations":{"a b":"c d"}}}`),
		post("bad finalizer", `{"metadata":{"name":"l","finalizers":["x y"]}}`),
		loose(post("bad owner", `{"metadata":{"name":"l","ownerReferences":[{"apiVersion":"v1","kind":"","name":"","uid":""}]}}`)),
		loose(post("another kind", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"k"}}`)),
		loose(post("another version", `{"apiVersion":"v2","kind":"ConfigMap","metadata":{"name":"k"}}`)),
		loose(post("no json", `{`)),
		loose(post("no object", `[]`)),
		loose(post("nothing", ``)),
		post("wrong type", `{"metadata":{"name":7}}`),
		{title: "strict", method: "POST", path: configs + "?fieldValidation=Strict", body: `{"metadata":{"name":"s","nome":"x"},"dato":{}}`},
		{title: "strict twice", method: "POST", path: configs + "?fieldValidation=Strict", body: `{"metadata":{"name":"s","name":"s"}}`},
		{title: "bad validation", method: "POST", path: configs + "?fieldValidation=Some", body: `{"metadata":{"name":"s"}}`},
		{title: "dry", method: "POST", path: configs + "?dryRun=All", body: `{"metadata":{"name":"dry"}}`},
		{title: "bad dry", method: "POST", path: configs + "?dryRun=Some", body: `{"metadata":{"name":"dry"}}`},
		get("was dry", configs+"/dry"),
		{title: "missing namespace", method: "POST", path: "/api/v1/namespaces/nowhere/configmaps", body: `{"metadata":{"name":"m"}}`},
		{title: "no namespace", method: "POST", path: "/api/v1/configmaps", body: `{"metadata":{"name":"m"}}`},
		{title: "yaml", method: "POST", path: configs, kind: "application/yaml", body: "metadata:\n  name: yaml\n"},
		{title: "text", method: "POST", path: configs, kind: "text/plain", body: "x"},
		{title: "post to a name", method: "POST", path: configs + "/a", body: `{"metadata":{"name":"a"}}`},
		put("update", "a", `{"metadata":{"name":"a","resourceVersion":"$a"},"data":{"k":"v"}}`),
		put("stale update", "a", `{"metadata":{"name":"a","resourceVersion":"$a"},"data":{"k":"w"}}`),
		put("update without a version", "a", `{"metadata":{"name":"a"},"data":{"k":"x"}}`),
		put("update with a bad version", "a", `{"metadata":{"name":"a","resourceVersion":"x"}}`),
		loose(put("update with another uid", "a", `{"metadata":{"name":"a","uid":"x"}}`)),
		put("update with another name", "a", `{"metadata":{"name":"b"}}`),
		put("update without a name", "a", `{"metadata":{}}`),
		put("update of nothing", "b", `{"metadata":{"name":"b"}}`),
		put("update of nothing with a version", "b", `{"metadata":{"name":"b","resourceVersion":"5"}}`),
		{title: "update without a change", method: "PUT", path: configs + "/a", body: `{"metadata":{"name":"a"},"data":{"k":"x"}}`, save: "same"},
		{title: "and again", method: "PUT", path: configs + "/a", body: `{"metadata":{"name":"a"},"data":{"k":"x"}}`, save: "again"},
		{title: "put to the collection", method: "PUT", path: configs, body: `{}`},
		{title: "quota", method: "POST", path: quotas, body: `{"metadata":{"name":"q"},"spec":{"hard":{"pods":"3"}},"status":{"hard":{"pods":"9"}}}`},
		{title: "quota status", method: "PUT", path: quotas + "/q/status", body: `{"metadata":{"name":"q","labels":{"a":"b"}},"spec":{"hard":{"pods":"4"}},"status":{"hard":{"pods":"5"}}}`},
		{title: "quota spec", method: "PUT", path: quotas + "/q", body: `{"metadata":{"name":"q"},"spec":{"hard":{"pods":"6"}},"status":{"hard":{"pods":"7"}}}`},
		get("quota status read", quotas+"/q/status"),
		{title: "post to a status", method: "POST", path: quotas + "/q/status", body: `{}`},
		{title: "quota goes", method: "DELETE", path: quotas + "/q"},
		{title: "class", method: "POST", path: classes, body: `{"metadata":{"name":"c"},"spec":{"controller":"x.io/y"}}`},
		{title: "class label", method: "PATCH", path: classes + "/c", kind: merge, body: `{"metadata":{"labels":{"a":"b"}}}`},
		{title: "class changes", method: "PATCH", path: classes + "/c", kind: merge, body: `{"spec":{"parameters":{"kind":"a","name":"b","scope":"Cluster"}}}`},
		{title: "class finalizer", method: "PATCH", path: classes + "/c", kind: merge, body: `{"metadata":{"finalizers":["x.io/y"]}}`},
		{title: "class goes", method: "DELETE", path: classes + "/c"},
		{title: "class has gone", method: "PATCH", path: classes + "/c", kind: merge, body: `{"metadata":{"finalizers":null}}`},
		get("no such subresource", configs+"/a/status"),
	}
}

func deletes() []call {
	remove := func(title, name, body string) call {
		return call{title: title, method: "DELETE", path: configs + "/" + name, body: body}
	}
	return []call{newNamespace, configMap("a", ""), configMap("b", `,"finalizers":["x.io/y"]`), configMap("c", `,"labels":{"l":"x"}`), configMap("d", ""), configMap("e", ""),
		remove("wrong uid", "a", `{"preconditions":{"uid":"x"}}`),
		remove("wrong version", "a", `{"preconditions":{"resourceVersion":"1"}}`),
		remove("dry", "a", `{"dryRun":["All"]}`),
		remove("bad propagation", "a", `{"propagationPolicy":"Sideways"}`),
		loose(remove("bad options", "a", `{"kind":"Pod","apiVersion":"v1"}`)),
		remove("orphan and policy", "a", `{"propagationPolicy":"Orphan","orphanDependents":true}`),
		remove("background", "a", `{"propagationPolicy":"Background"}`),
		remove("again", "a", ""),
		remove("with a finalizer", "b", ""),
		remove("with a finalizer again", "b", ""),
		call{title: "a new finalizer", loose: true, method: "PATCH", path: configs + "/b", kind: merge, body: `{"metadata":{"finalizers":["x.io/y","x.io/z"]}}`},
		call{title: "the last finalizer", method: "PATCH", path: configs + "/b", kind: merge, body: `{"metadata":{"finalizers":[]}}`},
		get("gone", configs+"/b"),
		call{title: "collection by label", method: "DELETE", path: configs + "?labelSelector=l"},
		get("what is left", configs+"?fieldSelector=metadata.name!%3Dkube-root-ca.crt"),
		call{title: "collection", method: "DELETE", path: configs},
		get("nothing is left", configs),
		call{title: "namespace collection", method: "DELETE", path: "/api/v1/namespaces"},
	}
}

func patches() []call {
	patch := func(title, kind, body string) call {
		return call{title: title, method: "PATCH", path: configs + "/a", kind: kind, body: body}
	}
	return []call{newNamespace, configMap("a", `,"labels":{"l":"x"}`),
		patch("merge", merge, `{"metadata":{"labels":{"m":"y","l":null}},"data":{"k":"v"}}`),
		patch("json", jsonType, `[{"op":"add","path":"/data/x","value":"y"},{"op":"remove","path":"/data/k"}]`),
		patch("json test fails", jsonType, `[{"op":"test","path":"/data/x","value":"z"}]`),
		patch("json missing path", jsonType, `[{"op":"remove","path":"/data/none"}]`),
		loose(patch("json bad", jsonType, `{}`)),
		patch("strategic", smart, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u"}]}}`),
		patch("strategic list", smart, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"q","uid":"w"}]}}`),
		patch("strategic delete", smart, `{"metadata":{"ownerReferences":[{"uid":"u","$patch":"delete"}]}}`),
		patch("merge bad", merge, `[]`),
		patch("merge no json", merge, `{`),
		patch("another type", "application/json", `{}`),
		patch("stale", merge, `{"metadata":{"resourceVersion":"$a"},"data":{"q":"q"}}`),
		patch("name", merge, `{"metadata":{"name":"b"}}`),
		loose(patch("bad label", merge, `{"metadata":{"labels":{"a b":"c"}}}`)),
		loose(patch("wrong type", merge, `{"data":"x"}`)),
		{title: "missing", method: "PATCH", path: configs + "/b", kind: merge, body: `{}`},
		{title: "no change", method: "PATCH", path: configs + "/a", kind: merge, body: `{}`},
		{title: "strict", loose: true, method: "PATCH", path: configs + "/a?fieldValidation=Strict", kind: merge, body: `{"dato":{}}`},
	}
}

func custom() []call {
	const things = "/apis/example.org/v1/namespaces/talk/things"
	return []call{newNamespace,
		{title: "definition", loose: true, method: "POST", path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body: `{"metadata":{"name":"things.example.org"},"spec":{"group":"example.org","scope":"Namespaced",
"names":{"plural":"things","kind":"Thing","shortNames":["th"],"categories":["all"]},"versions":[
{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},"additionalPrinterColumns":[{"name":"Size","type":"integer","jsonPath":".spec.size"},{"name":"Wide","type":"string","priority":1,"jsonPath":".spec.wide"}],
"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"size":{"type":"integer","default":3},"wide":{"type":"string"}}},"status":{"type":"object","properties":{"phase":{"type":"string"}}}}}}}]}}`},
		{title: "established", method: "GET", path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.org", settle: true},
		get("group", "/apis/example.org"),
		get("resources", "/apis/example.org/v1"),
		get("another version", "/apis/example.org/v2/things"),
		{title: "create", method: "POST", path: things, body: `{"apiVersion":"example.org/v1","kind":"Thing","metadata":{"name":"a"},"spec":{"size":1},"status":{"phase":"x"}}`},
		{title: "without kind", method: "POST", path: things, body: `{"metadata":{"name":"b"}}`},
		{title: "defaults and pruning", method: "POST", path: things, body: `{"apiVersion":"example.org/v1","kind":"Thing","metadata":{"name":"b"},"spec":{"other":1}}`},
		{title: "status", method: "PATCH", path: things + "/a/status", kind: merge, body: `{"spec":{"size":2},"status":{"phase":"y"}}`},
		{title: "spec", method: "PATCH", path: things + "/a", kind: merge, body: `{"spec":{"size":2},"status":{"phase":"z"}}`},
		{title: "update without a version", method: "PUT", path: things + "/a", body: `{"apiVersion":"example.org/v1","kind":"Thing","metadata":{"name":"a"}}`},
		{title: "strict", method: "POST", path: things + "?fieldValidation=Strict", body: `{"apiVersion":"example.org/v1","kind":"Thing","metadata":{"name":"c"},"spec":{"other":1}}`},
		{title: "wrong type", method: "POST", path: things, body: `{"apiVersion":"example.org/v1","kind":"Thing","metadata":{"name":"c"},"spec":{"size":"big"}}`},
		{title: "protobuf part", loose: true, method: "GET", path: things + "/a", accept: "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"},
		{title: "label", method: "PATCH", path: things + "/a", kind: merge, body: `{"metadata":{"labels":{"a":"b"}}}`},
		{title: "strategic", method: "PATCH", path: things + "/a", kind: smart, loose: true, body: `{}`},
		{title: "table", method: "GET", path: things, accept: asTable},
		{title: "part", method: "GET", path: things + "/a", accept: asPart},
		{title: "protobuf", loose: true, method: "GET", path: things + "/a", accept: "application/vnd.kubernetes.protobuf"},
		get("field", things+"?fieldSelector=spec.size%3D2"),
		get("list", things),
		get("watch", things+"?watch=1&timeoutSeconds=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"),
		{title: "delete", method: "DELETE", path: things + "/a"},
		{title: "definition goes", settle: true, method: "DELETE", path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.org"},
	}
}

func mistakes() []call {
	return []call{
		get("no resource", "/api/v1/nothings"),
		get("no group", "/apis/no.such/v1/things"),
		get("no group at all", "/apis/no.such"),
		get("no path", "/nothing"),
		get("cluster-scoped in a namespace", "/api/v1/namespaces/default/nodes"),
		get("namespaced without a namespace by name", "/api/v1/configmaps/a"),
		get("missing", "/api/v1/namespaces/default/configmaps/missing"),
		get("missing in a group", "/apis/apps/v1/namespaces/default/deployments/missing"),
		get("version of a group", "/apis/apps"),
		get("api", "/api"),
		{title: "method", method: "TRACE", path: "/api/v1/namespaces/default/configmaps"},
		{title: "put namespace of another name", method: "PUT", path: "/api/v1/namespaces/default", body: `{"metadata":{"name":"other"}}`},
	}
}

// unusual are reads as no client library makes them.
func unusual() []call {
	const (
		one   = "/api/v1/watch/namespaces/talk/configmaps/a?timeoutSeconds=1&resourceVersion=0"
		begin = configs + "?timeoutSeconds=1&resourceVersion=0"
	)
	return []call{newNamespace, configMap("a", `,"labels":{"l":"x"}`), configMap("b", ""),
		get("watch without a value", begin+"&watch="),
		get("watch that is f", begin+"&watch=f"),
		get("watch that is FALSE", configs+"?resourceVersion=$b&watch=FALSE"),
		get("watch and no watch", begin+"&watch=1&watch=0"),
		get("no watch and watch", configs+"?resourceVersion=$b&watch=0&watch=1"),
		get("one by the old path", one),
		get("one by the old path, by its name", one+"&fieldSelector=metadata.name%3Da"),
		get("one by the old path, by another name", one+"&fieldSelector=metadata.name%3Db"),
		get("one by the old path, by another field", one+"&fieldSelector=metadata.namespace%3Dother"),
		get("one by the old path, by a label", one+"&labelSelector=l%3Dy"),
		get("one by the old path, with a comma", "/api/v1/watch/namespaces/talk/configmaps/a%2Cmetadata.name!%3Db?timeoutSeconds=1&resourceVersion=0"),
		get("get at a bad version", configs+"/a?resourceVersion=x"),
		get("get at a negative version", configs+"/a?resourceVersion=-1"),
		{title: "table with a bad policy", method: "GET", path: configs + "?resourceVersion=0&includeObject=bogus", accept: asTable},
		{title: "table of one with a bad policy", method: "GET", path: configs + "/a?resourceVersion=0&includeObject=bogus", accept: asTable},
		{title: "watched table with a bad policy", method: "GET", path: begin + "&watch=1&includeObject=bogus", accept: asTable},
		loose(get("two slashes", "//api/v1/namespaces/talk/configmaps?resourceVersion=0")),
	}
}

// versions shows resources that have more than one.
func versions() []call {
	const (
		core    = "/api/v1/namespaces/talk/events"
		events  = "/apis/events.k8s.io/v1/namespaces/talk/events"
		scalers = "/apis/autoscaling/v2/namespaces/talk/horizontalpodautoscalers"
	)
	return []call{newNamespace,
		{title: "event", method: "POST", path: core, body: `{"metadata":{"name":"e"},"involvedObject":{"kind":"Pod","namespace":"talk","name":"p"},"message":"m","reason":"r","type":"Normal","source":{"component":"c"},"count":3,"firstTimestamp":"2001-01-01T00:00:00Z"}`},
		get("event by the other group", events+"/e"),
		get("event by field", core+"?fieldSelector=involvedObject.name%3Dp,reason%3Dr,type%3DNormal,source%3Dc,involvedObject.kind%3DPod"),
		get("event by another field", core+"?fieldSelector=involvedObject.name%3Dq"),
		get("event by the field of the other group", events+"?fieldSelector=regarding.name%3Dp"),
		{title: "scaler", method: "POST", path: scalers, body: `{"metadata":{"name":"s"},"spec":{"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"d"},"minReplicas":1,"maxReplicas":3,"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":50}}}]}}`},
		get("scaler in the old version", "/apis/autoscaling/v1/namespaces/talk/horizontalpodautoscalers/s"),
		get("scaler", scalers+"/s"),
		{title: "secret", method: "POST", path: "/api/v1/namespaces/talk/secrets", body: `{"metadata":{"name":"s"},"data":{"k":"dg=="}}`},
		get("secret by type", "/api/v1/namespaces/talk/secrets?fieldSelector=type%3DOpaque"),
		get("secret of no type", "/api/v1/namespaces/talk/secrets?fieldSelector=type!%3DOpaque"),
		get("namespace by phase", "/api/v1/namespaces?fieldSelector=status.phase%3DActive,metadata.name%3Dtalk"),
	}
}
