package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var groupVersion = schema.GroupVersion{Group: "example.com", Version: "v1"}

// A Site is served by a Deployment of its size, which reads its text from a ConfigMap.
type Site struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              SiteSpec   `json:"spec"`
	Status            SiteStatus `json:"status,omitempty"`
}

type SiteSpec struct {
	Text string `json:"text"`
	Size int32  `json:"size,omitempty"`
}

type SiteStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Ready              int32              `json:"ready,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

type SiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Site `json:"items"`
}

func (site *Site) DeepCopyObject() runtime.Object {
	return site.copied()
}

func (site *Site) copied() *Site {
	made := *site
	site.ObjectMeta.DeepCopyInto(&made.ObjectMeta)
	made.Status.Conditions = append([]metav1.Condition(nil), site.Status.Conditions...)
	return &made
}

func (list *SiteList) DeepCopyObject() runtime.Object {
	made := &SiteList{TypeMeta: list.TypeMeta}
	list.ListMeta.DeepCopyInto(&made.ListMeta)
	for index := range list.Items {
		made.Items = append(made.Items, *list.Items[index].copied())
	}
	return made
}

func addSites(scheme *runtime.Scheme) {
	scheme.AddKnownTypes(groupVersion, &Site{}, &SiteList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
}

// What brings the kind into being.
func definition() *unstructured.Unstructured {
	text := map[string]any{"type": "string"}
	number := func(more map[string]any) map[string]any {
		more["type"] = "integer"
		return more
	}
	condition := map[string]any{
		"type":       "object",
		"required":   []any{"type", "status", "reason", "message", "lastTransitionTime"},
		"properties": map[string]any{"type": text, "status": text, "reason": text, "message": text, "lastTransitionTime": map[string]any{"type": "string", "format": "date-time"}, "observedGeneration": number(map[string]any{"format": "int64"})},
	}
	spec := map[string]any{
		"type": "object", "required": []any{"text"},
		"properties": map[string]any{"text": text, "size": number(map[string]any{"format": "int32", "minimum": int64(0), "default": int64(1)})},
	}
	status := map[string]any{
		"type": "object",
		"properties": map[string]any{
			"observedGeneration": number(map[string]any{"format": "int64"}),
			"ready":              number(map[string]any{"format": "int32"}),
			"conditions":         map[string]any{"type": "array", "items": condition, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": []any{"type"}},
		},
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "sites.example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": "Namespaced",
			"names": map[string]any{"plural": "sites", "singular": "site", "kind": "Site", "listKind": "SiteList"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"subresources": map[string]any{"status": map[string]any{}},
				"schema":       map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "required": []any{"spec"}, "properties": map[string]any{"spec": spec, "status": status}}},
			}},
		},
	}}
}
