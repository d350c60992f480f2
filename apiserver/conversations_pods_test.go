package apiserver

import "fmt"

// assignments give pods to nodes. Of pods themselves only metadata is looked at:
// the real server fills in more of a pod than this one.
func assignments() []call {
	const pods = "/api/v1/namespaces/talk/pods"
	bind := func(title, pod, body string) call {
		return call{title: title, method: "POST", path: pods + "/" + pod + "/binding", body: body}
	}
	return []call{newNamespace,
		{title: "account", loose: true, method: "POST", path: "/api/v1/namespaces/talk/serviceaccounts", body: `{"metadata":{"name":"default"}}`},
		{title: "pod", settle: true, accept: asPart, method: "POST", path: pods, save: "p",
			body: `{"metadata":{"name":"p"},"spec":{"automountServiceAccountToken":false,"containers":[{"name":"c","image":"i"}]}}`},
		bind("to nothing", "p", `{"metadata":{"name":"p"},"target":{}}`),
		bind("to no node", "p", `{"metadata":{"name":"p"},"target":{"kind":"Pod","name":"n"}}`),
		loose(bind("of another uid", "p", `{"metadata":{"name":"p","uid":"x"},"target":{"kind":"Node","name":"n"}}`)),
		bind("of another name", "p", `{"metadata":{"name":"q"},"target":{"kind":"Node","name":"n"}}`),
		bind("of no name", "p", `{"target":{"kind":"Node","name":"n"}}`),
		bind("of nothing", "q", `{"metadata":{"name":"q"},"target":{"kind":"Node","name":"n"}}`),
		bind("to a node", "p", `{"metadata":{"name":"p","annotations":{"a":"b"},"labels":{"l":"x"}},"target":{"kind":"Node","name":"n"}}`),
		{title: "bound", method: "GET", path: pods + "/p", accept: asPart},
		{title: "by node", method: "GET", path: pods + "?fieldSelector=spec.nodeName%3Dn", accept: asParts},
		bind("again", "p", `{"metadata":{"name":"p"},"target":{"kind":"Node","name":"n"}}`),
		get("read", pods+"/p/binding"),
		{title: "replaced", method: "PUT", path: pods + "/p/binding", body: `{"metadata":{"name":"p"},"target":{"kind":"Node","name":"n"}}`},
		get("of another kind", configs+"/p/binding"),
	}
}

// defaults shows what is filled in of workloads that say as little as they can.
func defaults() []call {
	const (
		little  = `"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[%s]}}`
		probing = `{"name":"c","image":"i:latest","ports":[{"containerPort":80}],"livenessProbe":{"httpGet":{"port":80}},"resources":{"limits":{"cpu":"1"}}}`
	)
	make := func(resource, kind, spec string) call {
		group := "apps/v1"
		if kind == "Job" || kind == "CronJob" {
			group = "batch/v1"
		}
		return call{title: "a " + kind, method: "POST", path: "/apis/" + group + "/namespaces/talk/" + resource,
			body: fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"w"},"spec":{%s}}`, group, kind, spec)}
	}
	plain := fmt.Sprintf(little, `{"name":"c","image":"registry:5000/i@sha256:`+fmt.Sprintf("%064d", 0)+`"}`)
	once := `"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"a/b:1"}]}}`
	recreated := make("deployments", "Deployment", plain+`,"strategy":{"type":"Recreate"}`)
	recreated.title, recreated.body = "a Deployment that is recreated", fmt.Sprintf(`{"metadata":{"name":"r"},"spec":{%s,"strategy":{"type":"Recreate"}}}`, plain)
	return []call{newNamespace,
		make("deployments", "Deployment", fmt.Sprintf(little, probing)),
		recreated,
		make("replicasets", "ReplicaSet", plain),
		make("statefulsets", "StatefulSet", plain+`,"serviceName":"s"`),
		make("daemonsets", "DaemonSet", plain),
		make("jobs", "Job", once),
		make("cronjobs", "CronJob", `"schedule":"* * * * *","jobTemplate":{"spec":{`+once+`}}`),
	}
}
