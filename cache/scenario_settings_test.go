package cache

import (
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// What the settings of a scenario stand for.

func (s scenario) objects() objects {
	return objects{unstructured: s.With["type"] == "unstructured"}
}

// transform is the transform of a scenario: "mark" writes into each object,
// "fail:b@7" and "panic:b" do so for that object only, "nil" means no transform.
func (s scenario) transform() (TransformFunc, bool) {
	setting, ok := s.With["transform"]
	if !ok || setting == "nil" {
		return nil, ok
	}
	deed, which, _ := strings.Cut(setting, ":")
	return func(object any) (any, error) {
		text := show(object)
		if deed == "mark" {
			marked := object.(*corev1.ConfigMap).DeepCopy()
			marked.Data = map[string]string{"content": "marked"}
			return marked, nil
		}
		if text != which && !strings.HasPrefix(text, which+"@") {
			return object, nil
		}
		switch deed {
		case "fail":
			return nil, errors.New("the transform failed")
		case "panic":
			panic("the transform panicked")
		}
		return &corev1.Secret{}, nil
	}, true
}

// indexers is the index of a scenario: by name, but "fail:b" fails for b.
func (s scenario) indexers() Indexers {
	setting, ok := s.With["index"]
	if !ok {
		return Indexers{}
	}
	return Indexers{"name": indexByName(strings.TrimPrefix(setting, "fail:"))}
}

func indexByName(fails string) IndexFunc {
	return func(object any) ([]string, error) {
		name, _, _ := strings.Cut(show(object), "@")
		if name == fails {
			return nil, errors.New("the index function failed")
		}
		return []string{name}, nil
	}
}
