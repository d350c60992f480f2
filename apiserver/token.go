package apiserver

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// token says where a list continues: after a key, at a version. Version -1 is the
// newest, for clients that prefer an inconsistent list to none. Clients must not
// read it; it has the real server's format because some do.
type token struct {
	API     string `json:"v"`
	Version int64  `json:"rv"`
	Start   string `json:"start"`
}

const tokenAPI = "meta.k8s.io/v1"

func newToken(version int64, after, namespace string) string {
	if namespace != "" {
		after = strings.TrimPrefix(after, namespace+"/")
	}
	return token{API: tokenAPI, Version: version, Start: after + "\x00"}.String()
}

func (t token) String() string {
	data, _ := json.Marshal(t) // strings and numbers only
	return base64.RawURLEncoding.EncodeToString(data)
}

func parseToken(text string) (token, error) {
	var t token
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(data, &t)
	}
	switch {
	case err != nil:
		return t, fmt.Errorf("invalid continue token: continue key is not valid: %w", err)
	case t.API != tokenAPI:
		return t, fmt.Errorf("invalid continue token: continue key is not valid: server does not recognize this encoded version %q", t.API)
	case t.Version == 0 || t.Version < -1:
		return t, fmt.Errorf("invalid continue token: continue key is not valid: incorrect encoded start resourceVersion (version %s)", t.API)
	case t.Start == "":
		return t, fmt.Errorf("invalid continue token: continue key is not valid: encoded start key empty (version %s)", t.API)
	}
	return t, nil
}

func (t token) start(namespace string) string { return joinKey(namespace, t.Start) }

func compareKey(e *Object, key string) int { return strings.Compare(e.key, key) }

// expiredToken offers a token that continues with the newest state.
func expiredToken(t token) error {
	t.Version = -1
	err := apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result. " +
		"You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. " +
		"Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted " +
		"between the time the first chunk was returned and now may show up in the list.")
	err.ErrStatus.ListMeta.Continue = t.String()
	return err
}
