// What a program written with client-go does with a cluster: typed and dynamic clients, server-side apply and
// informers. It says what it saw as JSON; the tests of `tenure up` compare.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	applyapps "k8s.io/client-go/applyconfigurations/apps/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	patience  = 4 * time.Minute
	lookEvery = 100 * time.Millisecond
	namespace = "default"
	name      = "web"
)

var (
	pools       = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"}
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	shoes       = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "shoes"}
)

type told struct {
	Kinds     bool     `json:"kinds"`
	Ready     int32    `json:"ready"`
	Images    []string `json:"images"`
	Informed  int      `json:"informed"`
	Pools     []string `json:"pools"`
	Size      int64    `json:"size"`
	Managers  []string `json:"managers"`
	Conflict  bool     `json:"conflict"`
	PoolsSeen int      `json:"poolsSeen"`
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := run(ctx, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	untyped, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	var found told
	for _, step := range []func(context.Context, *kubernetes.Clientset, dynamic.Interface, *told) error{
		discover, informed, workload, applied, custom,
	} {
		if err := step(ctx, typed, untyped, &found); err != nil {
			return err
		}
	}
	return json.NewEncoder(os.Stdout).Encode(found)
}

func discover(_ context.Context, typed *kubernetes.Clientset, _ dynamic.Interface, found *told) error {
	_, lists, err := typed.Discovery().ServerGroupsAndResources()
	for _, list := range lists {
		found.Kinds = found.Kinds || list.GroupVersion == "karpenter.sh/v1"
	}
	return err
}

// The informers are started first: they see what comes later by their watches.
func informed(ctx context.Context, typed *kubernetes.Clientset, untyped dynamic.Interface, found *told) error {
	factory := informers.NewSharedInformerFactory(typed, time.Minute)
	pods := factory.Core().V1().Pods()
	pods.Informer()
	factory.Core().V1().Nodes().Informer()
	factory.Apps().V1().Deployments().Informer()
	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("%v has not synced", kind)
		}
	}
	ofPools := dynamicinformer.NewDynamicSharedInformerFactory(untyped, time.Minute)
	lister := ofPools.ForResource(pools).Lister()
	ofPools.Start(ctx.Done())
	ofPools.WaitForCacheSync(ctx.Done())
	seen, err := lister.List(labels.Everything())
	found.PoolsSeen = len(seen)
	running = func() (int, error) {
		all, err := pods.Lister().Pods(namespace).List(labels.Everything())
		count := 0
		for _, pod := range all {
			if pod.Status.Phase == corev1.PodRunning {
				count++
			}
		}
		return count, err
	}
	return err
}

// How many running pods the informer has seen.
var running func() (int, error)

func workload(ctx context.Context, typed *kubernetes.Clientset, _ dynamic.Interface, found *told) error {
	replicas := int32(2)
	app := map[string]string{"app": name}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: app},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: app},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "registry.example/web:1"}}},
			},
		},
	}
	deployments := typed.AppsV1().Deployments(namespace)
	if _, err := deployments.Create(ctx, deployment, metav1.CreateOptions{FieldManager: "maker"}); err != nil {
		return err
	}
	err := wait.PollUntilContextCancel(ctx, lookEvery, true, func(ctx context.Context) (bool, error) {
		seen, err := deployments.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		found.Ready = seen.Status.ReadyReplicas
		count, err := running()
		found.Informed = count
		return found.Ready == replicas && count == int(replicas), err
	})
	if err != nil {
		return err
	}
	pods, err := typed.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + name, Limit: 1})
	for _, pod := range pods.Items {
		found.Images = append(found.Images, pod.Status.ContainerStatuses[0].Image)
	}
	return err
}

func applied(ctx context.Context, typed *kubernetes.Clientset, _ dynamic.Interface, found *told) error {
	deployments := typed.AppsV1().Deployments(namespace)
	wanted := applyapps.Deployment(name, namespace).WithSpec(applyapps.DeploymentSpec().WithReplicas(3))
	_, err := deployments.Apply(ctx, wanted, metav1.ApplyOptions{FieldManager: "applier"})
	found.Conflict = err != nil
	seen, err := deployments.Apply(ctx, wanted, metav1.ApplyOptions{FieldManager: "applier", Force: true})
	if err != nil {
		return err
	}
	for _, entry := range seen.ManagedFields {
		if entry.Subresource == "" {
			found.Managers = append(found.Managers, entry.Manager+" "+string(entry.Operation))
		}
	}
	slices.Sort(found.Managers)
	return nil
}

func custom(ctx context.Context, _ *kubernetes.Clientset, untyped dynamic.Interface, found *told) error {
	listed, err := untyped.Resource(pools).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, pool := range listed.Items {
		found.Pools = append(found.Pools, pool.GetName())
	}
	var definition unstructured.Unstructured
	if err := json.Unmarshal([]byte(shoeDefinition), &definition.Object); err != nil {
		return err
	}
	if _, err := untyped.Resource(definitions).Create(ctx, &definition, metav1.CreateOptions{}); err != nil {
		return err
	}
	shoe := []byte(`{"apiVersion":"example.com/v1","kind":"Shoe","metadata":{"name":"left"},"spec":{"size":42}}`)
	force := true
	return wait.PollUntilContextCancel(ctx, lookEvery, true, func(ctx context.Context) (bool, error) {
		options := metav1.PatchOptions{FieldManager: "applier", Force: &force}
		made, err := untyped.Resource(shoes).Namespace(namespace).Patch(ctx, "left", types.ApplyPatchType, shoe, options)
		if err != nil {
			return false, nil // Its kind is not served yet.
		}
		found.Size, _, err = unstructured.NestedInt64(made.Object, "spec", "size")
		return true, err
	})
}

const shoeDefinition = `{
  "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "shoes.example.com"},
  "spec": {
    "group": "example.com", "scope": "Namespaced", "names": {"plural": "shoes", "kind": "Shoe"},
    "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
      "type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}
    }}}]
  }
}`
