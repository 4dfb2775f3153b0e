package main

import (
	"context"
	"fmt"
	"os"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	namespace = "sites"
	lease     = "sites-leader"
)

// A manager that runs until it is told to stop.
type running struct {
	manager ctrl.Manager
	stop    context.CancelFunc
	stopped chan error
}

func (r *running) end() {
	r.stop()
	check(<-r.stopped)
}

// The world as the scenario sees it: without a cache.
type world struct {
	client.Client
	ctx context.Context
}

func reconcileSites(ctx context.Context) {
	settings, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	check(err)
	settings.QPS = -1 // the server has limits of its own
	plain, err := client.New(settings, client.Options{Scheme: newScheme()})
	check(err)
	w := &world{Client: plain, ctx: ctx}
	w.prepare()
	first := start(ctx, settings, "one")
	w.leads("one")
	second := start(ctx, settings, "two")
	w.sitesAreServed()
	w.driftIsUndone()
	w.statusFollows()
	w.secretsWake()
	indexAnswers(ctx, first)
	w.sitesLeave("hello")
	first.end()
	w.leads("two")
	w.make("again", "one")
	w.eventually("the second manager takes over", func() bool {
		var record corev1.ConfigMap
		return w.has("again-record", &record) && record.Data["made-by"] == "two"
	})
	w.sitesLeave("again")
	second.end()
}

func start(ctx context.Context, settings *rest.Config, identity string) *running {
	skips := true
	manager, err := ctrl.NewManager(settings, ctrl.Options{
		Scheme:                        newScheme(),
		Metrics:                       server.Options{BindAddress: "0"},
		Controller:                    config.Controller{SkipNameValidation: &skips},
		LeaderElection:                true,
		LeaderElectionID:              lease,
		LeaderElectionNamespace:       namespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 ptr(4 * time.Second),
		RenewDeadline:                 ptr(3 * time.Second),
		RetryPeriod:                   ptr(200 * time.Millisecond),
	})
	check(err)
	r := &reconciler{Client: manager.GetClient(), recorder: manager.GetEventRecorder("sites"), identity: identity}
	check(r.setUp(ctx, manager))
	own, stop := context.WithCancel(ctx)
	stopped := make(chan error, 1)
	go func() { stopped <- manager.Start(own) }()
	return &running{manager: manager, stop: stop, stopped: stopped}
}

func ptr[T any](value T) *T { return &value }

func (w *world) prepare() {
	check(w.Create(w.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	check(w.Create(w.ctx, definition()))
	w.eventually("the definition is established", func() bool {
		current := &unstructured.Unstructured{}
		current.SetGroupVersionKind(definition().GroupVersionKind())
		check(w.Get(w.ctx, client.ObjectKey{Name: "sites.example.com"}, current))
		conditions, _, err := unstructured.NestedSlice(current.Object, "status", "conditions")
		check(err)
		for _, one := range conditions {
			condition := one.(map[string]any)
			if condition["type"] == "Established" && condition["status"] == "True" {
				return true
			}
		}
		return false
	})
}

// Waits for a fact, which must come about.
func (w *world) eventually(what string, holds func() bool) {
	for !holds() {
		select {
		case <-w.ctx.Done():
			panic("never: " + what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (w *world) has(name string, object client.Object) bool {
	err := w.Get(w.ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
	expect(err == nil || apierrors.IsNotFound(err), fmt.Sprint(err))
	return err == nil
}

func (w *world) make(name, text string) {
	site := &Site{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: SiteSpec{Text: text}}
	check(w.Create(w.ctx, site))
	expect(site.Spec.Size == 1, "the definition's default is missing")
}

func (w *world) leads(who string) {
	var lock coordinationv1.Lease
	w.eventually(who+" leads", func() bool {
		if !w.has(lease, &lock) || lock.Spec.HolderIdentity == nil || *lock.Spec.HolderIdentity == "" {
			return false
		}
		return who == "one" || *lock.Spec.LeaseTransitions > 0
	})
}

func (w *world) sitesAreServed() {
	w.make("hello", "Hello")
	var site Site
	w.eventually("the site is reported on", func() bool {
		return w.has("hello", &site) && site.Status.ObservedGeneration == 1
	})
	expect(len(site.Finalizers) == 1 && site.Generation == 1, "a finalizer is no change of what is wanted")
	var text corev1.ConfigMap
	expect(w.has("hello", &text) && text.Data["text"] == "Hello", "the text is not there")
	expect(metav1.IsControlledBy(&text, &site), "the text has no owner")
	var deployment appsv1.Deployment
	expect(w.has("hello", &deployment) && *deployment.Spec.Replicas == 1, "the deployment is not there")
	expect(metav1.IsControlledBy(&deployment, &site), "the deployment has no owner")
	var record corev1.ConfigMap
	expect(w.has("hello-record", &record) && record.Data["made-by"] == "one", "somebody else leads")
	w.eventually("the event is there", func() bool {
		var list corev1.EventList
		check(w.List(w.ctx, &list, client.InNamespace(namespace)))
		for _, event := range list.Items {
			if event.Reason == "Recorded" && event.InvolvedObject.UID == site.UID {
				return true
			}
		}
		return false
	})
	site.Spec.Size = 3
	check(w.Update(w.ctx, &site))
	w.eventually("the deployment grows", func() bool {
		return w.has("hello", &deployment) && *deployment.Spec.Replicas == 3
	})
}

func (w *world) driftIsUndone() {
	var text corev1.ConfigMap
	expect(w.has("hello", &text), "the text is gone")
	was := text.UID
	check(w.Delete(w.ctx, &text))
	w.eventually("the text is made again", func() bool {
		return w.has("hello", &text) && text.UID != was
	})
	text.Data["text"] = "Goodbye"
	check(w.Update(w.ctx, &text))
	w.eventually("the text is restored", func() bool {
		return w.has("hello", &text) && text.Data["text"] == "Hello"
	})
}

// What a deployment controller would report reaches the site.
func (w *world) statusFollows() {
	var deployment appsv1.Deployment
	expect(w.has("hello", &deployment), "the deployment is gone")
	before := deployment.DeepCopy()
	deployment.Status.Replicas, deployment.Status.ReadyReplicas = 3, 3
	check(w.Status().Patch(w.ctx, &deployment, client.MergeFrom(before)))
	var site Site
	w.eventually("the site is ready", func() bool {
		return w.has("hello", &site) && meta.IsStatusConditionTrue(site.Status.Conditions, "Ready")
	})
	expect(site.Status.Ready == 3 && site.Status.ObservedGeneration == 2, fmt.Sprint(site.Status))
}

// The secret is seen as metadata alone; the record's return shows that it woke the site.
func (w *world) secretsWake() {
	record := recordOf(&Site{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "hello"}})
	check(w.Delete(w.ctx, record))
	check(w.Create(w.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "key", Labels: map[string]string{siteLabel: "hello"},
	}}))
	w.eventually("the record is made again", func() bool { return w.has("hello-record", record) })
}

func indexAnswers(ctx context.Context, first *running) {
	for text, count := range map[string]int{"Hello": 1, "Goodbye": 0} {
		var list SiteList
		err := first.manager.GetClient().List(ctx, &list, client.MatchingFields{textIndex: text})
		check(err)
		expect(len(list.Items) == count, fmt.Sprint(text, ": ", len(list.Items)))
	}
}

// A site goes when its finalizer has run; what it owned is collected.
func (w *world) sitesLeave(name string) {
	check(w.Delete(w.ctx, &Site{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}))
	for _, object := range []client.Object{&Site{}, &corev1.ConfigMap{}, &appsv1.Deployment{}} {
		w.eventually(fmt.Sprintf("%T %s is gone", object, name), func() bool { return !w.has(name, object) })
	}
	expect(!w.has(name+"-record", &corev1.ConfigMap{}), "the finalizer has not run")
}
