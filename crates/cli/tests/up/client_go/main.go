// Uses the server as Go programs do: typed clients that write protobuf, informers that list by
// streaming, the dynamic client, server-side apply, leader election. Prints "ok" at the end;
// anything unexpected ends it with an error.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/util/retry"

	"k8s.io/apimachinery/pkg/runtime"
)

const namespace = "go"

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	check(err)
	config.QPS = -1 // the server has limits of its own
	client, err := kubernetes.NewForConfig(config)
	check(err)
	plain, err := dynamic.NewForConfig(config)
	check(err)

	_, err = client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	check(err)
	informersFollow(ctx, client)
	conflictsAreRetried(ctx, client)
	listsArePaged(ctx, client)
	configurationsAreApplied(ctx, client)
	untypedObjectsWork(ctx, plain)
	oneLeads(ctx, client)
	fmt.Println("ok")
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func expect(holds bool, what string) {
	if !holds {
		panic(what)
	}
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"made-by": "go"}}, Data: map[string]string{"key": "1"}}
}

func informersFollow(ctx context.Context, client kubernetes.Interface) {
	maps := client.CoreV1().ConfigMaps(namespace)
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	informer := factory.Core().V1().ConfigMaps().Informer()
	seen := make(chan string, 100)
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { seen <- "added " + object.(*corev1.ConfigMap).Name },
		UpdateFunc: func(_, object any) {
			seen <- "changed " + object.(*corev1.ConfigMap).Name + " " + object.(*corev1.ConfigMap).Data["key"]
		},
		DeleteFunc: func(object any) { seen <- "deleted " + object.(*corev1.ConfigMap).Name },
	})
	check(err)
	factory.Start(ctx.Done())
	expect(cache.WaitForCacheSync(ctx.Done(), informer.HasSynced), "the cache never synced")
	made, err := maps.Create(ctx, configMap("followed"), metav1.CreateOptions{})
	check(err)
	made.Data["key"] = "2"
	_, err = maps.Update(ctx, made, metav1.UpdateOptions{})
	check(err)
	check(maps.Delete(ctx, "followed", metav1.DeleteOptions{}))
	wanted := map[string]bool{"added followed": true, "changed followed 2": true, "deleted followed": true}
	for len(wanted) > 0 {
		select {
		case event := <-seen:
			delete(wanted, event)
		case <-ctx.Done():
			panic(fmt.Sprint("never seen: ", wanted))
		}
	}
}

func conflictsAreRetried(ctx context.Context, client kubernetes.Interface) {
	maps := client.CoreV1().ConfigMaps(namespace)
	_, err := maps.Create(ctx, configMap("hot"), metav1.CreateOptions{})
	check(err)
	_, err = maps.Create(ctx, configMap("hot"), metav1.CreateOptions{})
	expect(apierrors.IsAlreadyExists(err), "a name was given twice")
	done := make(chan error)
	const writers = 8
	for writer := range writers {
		go func() {
			done <- retry.RetryOnConflict(retry.DefaultBackoff, func() error {
				current, err := maps.Get(ctx, "hot", metav1.GetOptions{})
				if err != nil {
					return err
				}
				current.Data[fmt.Sprint("writer-", writer)] = "was here"
				_, err = maps.Update(ctx, current, metav1.UpdateOptions{})
				return err
			})
		}()
	}
	lost := 0
	for range writers {
		if err := <-done; apierrors.IsConflict(err) {
			lost++
		} else {
			check(err)
		}
	}
	final, err := maps.Get(ctx, "hot", metav1.GetOptions{})
	check(err)
	expect(len(final.Data) == 1+writers-lost, fmt.Sprint("updates were lost: ", final.Data))
}

func listsArePaged(ctx context.Context, client kubernetes.Interface) {
	maps := client.CoreV1().ConfigMaps(namespace)
	for index := range 25 {
		_, err := maps.Create(ctx, configMap(fmt.Sprintf("page-%02d", index)), metav1.CreateOptions{})
		check(err)
	}
	pages := pager.New(pager.SimplePageFunc(func(options metav1.ListOptions) (runtime.Object, error) {
		return maps.List(ctx, options)
	}))
	pages.PageSize = 10
	count := 0
	check(pages.EachListItem(ctx, metav1.ListOptions{LabelSelector: "made-by=go"}, func(runtime.Object) error {
		count++
		return nil
	}))
	expect(count == 26, fmt.Sprint("pages held ", count))
	check(maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "made-by=go"}))
	left, err := maps.List(ctx, metav1.ListOptions{LabelSelector: "made-by=go"})
	check(err)
	expect(len(left.Items) == 0, "the collection is still there")
}

func configurationsAreApplied(ctx context.Context, client kubernetes.Interface) {
	maps := client.CoreV1().ConfigMaps(namespace)
	wanted := applycore.ConfigMap("applied", namespace).WithData(map[string]string{"key": "1"})
	_, err := maps.Apply(ctx, wanted, metav1.ApplyOptions{FieldManager: "one"})
	check(err)
	other := applycore.ConfigMap("applied", namespace).WithData(map[string]string{"key": "2"})
	_, err = maps.Apply(ctx, other, metav1.ApplyOptions{FieldManager: "two"})
	expect(apierrors.IsConflict(err), "a field was taken from its owner")
	patched, err := maps.Patch(ctx, "applied", types.StrategicMergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
	check(err)
	expect(patched.Labels["a"] == "b" && patched.Data["key"] == "1", "the patch is not there")
}

func untypedObjectsWork(ctx context.Context, client dynamic.Interface) {
	deployments := client.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}).Namespace(namespace)
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web"},
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "web", "image": "nginx"}}},
			},
		},
	}}
	made, err := deployments.Create(ctx, object, metav1.CreateOptions{})
	check(err)
	replicas, _, err := unstructured.NestedInt64(made.Object, "spec", "replicas")
	check(err)
	expect(replicas == 1 && made.GetGeneration() == 1, "defaults are missing")
	check(deployments.Delete(ctx, "web", metav1.DeleteOptions{}))
	_, err = deployments.Get(ctx, "web", metav1.GetOptions{})
	expect(apierrors.IsNotFound(err), "the deployment is still there")
}

func oneLeads(ctx context.Context, client kubernetes.Interface) {
	leads := make(chan struct{})
	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Name: "leader", Namespace: namespace},
		Client:     client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: "me"},
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: 4 * time.Second, RenewDeadline: 3 * time.Second, RetryPeriod: 200 * time.Millisecond, ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { close(leads) },
				OnStoppedLeading: func() {},
			},
		})
	}()
	<-leads
	cancel()
	<-done
	lease, err := client.CoordinationV1().Leases(namespace).Get(context.Background(), "leader", metav1.GetOptions{})
	check(err)
	expect(lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "", "the lease was not given back")
}
