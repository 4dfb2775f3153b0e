package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	applymeta "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// Holds a site until the record of it, which nothing owns, is gone.
	finalizer = "example.com/record"
	// The index of sites by the text that they show.
	textIndex = "spec.text"
	// A secret that names a site wakes it.
	siteLabel = "example.com/site"
)

// Brings about what sites ask for, with what most operators use: the cache, owned objects, an
// index, server-side apply, a status patch, a finalizer, events.
type reconciler struct {
	client.Client
	recorder events.EventRecorder
	identity string
}

func (r *reconciler) setUp(ctx context.Context, manager ctrl.Manager) error {
	err := manager.GetFieldIndexer().IndexField(ctx, &Site{}, textIndex, func(object client.Object) []string {
		return []string{object.(*Site).Spec.Text}
	})
	if err != nil {
		return err
	}
	named := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		name := object.GetLabels()[siteLabel]
		if name == "" {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name}}}
	})
	return ctrl.NewControllerManagedBy(manager).
		For(&Site{}).
		Owns(&corev1.ConfigMap{}).
		Owns(&appsv1.Deployment{}).
		Watches(&corev1.Secret{}, named, builder.OnlyMetadata).
		Named("sites-" + r.identity).
		Complete(r)
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var site Site
	if err := r.Get(ctx, request.NamespacedName, &site); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !site.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.leave(ctx, &site)
	}
	if controllerutil.AddFinalizer(&site, finalizer) {
		return ctrl.Result{}, r.Update(ctx, &site)
	}
	if err := r.keepRecord(ctx, &site); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.applyText(ctx, &site); err != nil {
		return ctrl.Result{}, err
	}
	deployment, err := r.keepDeployment(ctx, &site)
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.report(ctx, &site, deployment)
}

func recordOf(site *Site) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name + "-record"}}
}

func (r *reconciler) keepRecord(ctx context.Context, site *Site) error {
	record := recordOf(site)
	record.Data = map[string]string{"made-by": r.identity}
	err := r.Create(ctx, record)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err == nil {
		r.recorder.Eventf(site, record, corev1.EventTypeNormal, "Recorded", "Record", "keeps a record in %s", record.Name)
	}
	return err
}

func (r *reconciler) leave(ctx context.Context, site *Site) error {
	if err := client.IgnoreNotFound(r.Delete(ctx, recordOf(site))); err != nil {
		return err
	}
	before := site.copied()
	if controllerutil.RemoveFinalizer(site, finalizer) {
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		return client.IgnoreNotFound(r.Patch(ctx, site, patch))
	}
	return nil
}

func (r *reconciler) applyText(ctx context.Context, site *Site) error {
	owner := applymeta.OwnerReference().
		WithAPIVersion(groupVersion.String()).WithKind("Site").WithName(site.Name).WithUID(site.UID).
		WithController(true).WithBlockOwnerDeletion(true)
	text := applycore.ConfigMap(site.Name, site.Namespace).
		WithOwnerReferences(owner).
		WithData(map[string]string{"text": site.Spec.Text})
	return r.Apply(ctx, text, client.FieldOwner("sites"), client.ForceOwnership)
}

func (r *reconciler) keepDeployment(ctx context.Context, site *Site) (*appsv1.Deployment, error) {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, deployment, func() error {
		labels := map[string]string{siteLabel: site.Name}
		deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		deployment.Spec.Replicas = &site.Spec.Size
		deployment.Spec.Template.Labels = labels
		if len(deployment.Spec.Template.Spec.Containers) == 0 {
			deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web"}}
		}
		return controllerutil.SetControllerReference(site, deployment, r.Scheme())
	})
	return deployment, err
}

func (r *reconciler) report(ctx context.Context, site *Site, deployment *appsv1.Deployment) error {
	before := site.copied()
	site.Status.ObservedGeneration = site.Generation
	site.Status.Ready = deployment.Status.ReadyReplicas
	status := metav1.ConditionFalse
	if site.Status.Ready >= site.Spec.Size {
		status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&site.Status.Conditions, metav1.Condition{
		Type: "Ready", Status: status, Reason: "Counted", ObservedGeneration: site.Generation,
		Message: fmt.Sprintf("%d of %d", site.Status.Ready, site.Spec.Size),
	})
	return r.Status().Patch(ctx, site, client.MergeFrom(before))
}
