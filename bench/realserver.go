package main

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tarnproject/tarn/bench/podset"
	"github.com/tarnproject/tarn/bench/replay"
)

// realServer is the kube-apiserver that a kubeconfig leads to, filled with the pods of a
// race. It is meant for an empty cluster without controllers: they would delete pods
// whose owners do not exist. Nobody sends updates there, so a race measures the sync and
// the reads.
func realServer(ctx context.Context, kubeconfig, data string, kind podset.Kind, n int) (replay.Info, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return replay.Info{}, err
	}
	cfg.QPS = -1 // not limited
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return replay.Info{}, err
	}
	source, err := podset.Open(data)
	if err != nil {
		return replay.Info{}, err
	}
	set, err := source.Make(kind, n)
	if err != nil {
		return replay.Info{}, err
	}
	if err := podset.Fill(ctx, client, set.Pods); err != nil {
		return replay.Info{}, fmt.Errorf("fill the server of %s: %w", kubeconfig, err)
	}
	return countPods(ctx, client, source.Origin)
}

// countPods lists what the server has.
func countPods(ctx context.Context, client kubernetes.Interface, origin string) (replay.Info, error) {
	info := replay.Info{Origin: origin, Bytes: map[replay.Format]int{}}
	list, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return info, err
	}
	if info.Pods = len(list.Items); info.Pods == 0 {
		return info, errors.New("the server has no pods")
	}
	for i := range list.Items {
		info.Bytes[replay.Protobuf] += list.Items[i].Size()
	}
	return info, nil
}
