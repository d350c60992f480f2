package relay

import "testing"

// The origin may select by fields that the relay does not know.
func TestUnknownFieldSelectors(t *testing.T) {
	r := newRig(t, Options{})
	for path, asked := range map[string]int{
		"/api/v1/pods?resourceVersion=0&fieldSelector=spec.color%3Dred":                          1,
		"/api/v1/pods?resourceVersion=0&watch=1&timeoutSeconds=1&fieldSelector=spec.color%3Dred": 1,
		"/api/v1/watch/pods?resourceVersion=0&timeoutSeconds=1&fieldSelector=spec.color%3Dred":   1,
		"/api/v1/pods?resourceVersion=0&fieldSelector=spec.nodeName%3Dred":                       0,
		"/api/v1/pods?resourceVersion=0&fieldSelector=%3D%3D%3D":                                 0,
		"/api/v1/namespaces/a/pods/b?resourceVersion=0&fieldSelector=spec.color%3Dred":           0,
		"/api/v1/pods?resourceVersion=0&fieldSelector=spec.color%3Dred&" + shardQuery(0):         0,
	} {
		r.requests()
		if r.read(path); len(r.requests()) != asked {
			t.Errorf("%s: the origin was asked %d times", path, asked)
		}
	}
}
