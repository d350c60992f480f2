//go:build !tarn_client_go_0_36

package apiserver

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/sharding"
)

const knowsShards = true

func hashField(value string) string { return sharding.HashField(value) }

// echo tells the client of a list which shard it was given.
func (s *Shard) echo(meta *metav1.ListMeta) { meta.ShardInfo = &metav1.ShardInfo{Selector: s.text} }
