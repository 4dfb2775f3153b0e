package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Serves webhooks on ConfigMaps. The first line printed says where and under which authority;
// from then on every call is a line.
func serveWebhooks(ctx context.Context) {
	scheme := newScheme()
	mux := http.NewServeMux()
	for path, hook := range map[string]*admission.Webhook{
		"/default":  admission.WithDefaulter(scheme, defaulter{}),
		"/validate": admission.WithValidator(scheme, validator{}),
		"/allow":    {Handler: admission.HandlerFunc(allow)},
		"/slow":     {Handler: admission.HandlerFunc(allowLate)},
		"/first":    {Handler: trail(scheme, "1")},
		"/second":   {Handler: trail(scheme, "2")},
		"/brighten": {Handler: admission.HandlerFunc(brighten)},
	} {
		handler, err := admission.StandaloneWebhook(&admission.Webhook{Handler: told(path, hook.Handler)}, admission.StandaloneOptions{})
		check(err)
		mux.Handle(path, handler)
	}
	mux.HandleFunc("/convert", convertLamps)
	authority, config := certificates()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	served := &http.Server{Handler: mux, TLSConfig: config}
	line, err := json.Marshal(map[string]any{"url": "https://" + listener.Addr().String(), "caBundle": authority})
	check(err)
	fmt.Println(string(line))
	context.AfterFunc(ctx, func() { served.Close() })
	check(served.ServeTLS(listener, "", ""))
}

// Says what a webhook is asked, then asks it.
func told(path string, handler admission.Handler) admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, request admission.Request) admission.Response {
		fmt.Println(path, request.Operation, request.Resource.Resource, request.Name, "dryRun:", *request.DryRun)
		return handler.Handle(ctx, request)
	})
}

type defaulter struct{}

func (defaulter) Default(_ context.Context, object *corev1.ConfigMap) error {
	if object.Labels == nil {
		object.Labels = map[string]string{}
	}
	object.Labels["defaulted"] = "yes"
	return nil
}

type validator struct{}

func (validator) ValidateCreate(_ context.Context, object *corev1.ConfigMap) (admission.Warnings, error) {
	if _, has := object.Data["forbidden"]; has {
		return nil, errors.New("data.forbidden is not for maps")
	}
	if object.Labels["defaulted"] != "yes" {
		return nil, errors.New("seen before it was complete")
	}
	if _, has := object.Data["odd"]; has {
		return admission.Warnings{"data.odd is odd"}, nil
	}
	return nil, nil
}

func (validator) ValidateUpdate(_ context.Context, before, after *corev1.ConfigMap) (admission.Warnings, error) {
	if before.Data["fixed"] != after.Data["fixed"] {
		return nil, fmt.Errorf("data.fixed was %q and stays so", before.Data["fixed"])
	}
	return nil, nil
}

func (validator) ValidateDelete(_ context.Context, object *corev1.ConfigMap) (admission.Warnings, error) {
	if object.Labels["protected"] == "yes" {
		return nil, errors.New("it is protected")
	}
	return nil, nil
}

func allow(context.Context, admission.Request) admission.Response {
	return admission.Allowed("")
}

func allowLate(ctx context.Context, request admission.Request) admission.Response {
	select {
	case <-time.After(10 * time.Second):
	case <-ctx.Done():
	}
	return allow(ctx, request)
}

// Makes a lamp brighter by a watt; it knows lamps of v2 alone.
func brighten(_ context.Context, request admission.Request) admission.Response {
	var lamp struct {
		APIVersion string         `json:"apiVersion"`
		Kind       string         `json:"kind"`
		Metadata   map[string]any `json:"metadata"`
		Spec       struct {
			Milliwatts int `json:"milliwatts"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(request.Object.Raw, &lamp); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if lamp.APIVersion != "lamps.example.com/v2" || request.Kind.Version != "v2" || request.Resource.Version != "v2" {
		return admission.Denied("it is in " + lamp.APIVersion)
	}
	lamp.Spec.Milliwatts += 1000
	changed, err := json.Marshal(lamp)
	check(err)
	response := admission.PatchResponseFromRaw(request.Object.Raw, changed)
	return response.WithWarnings("asked for in " + request.RequestKind.Version)
}

// Leaves a mark behind whatever marks are there.
func trail(scheme *runtime.Scheme, mark string) admission.Handler {
	decoder := admission.NewDecoder(scheme)
	return admission.HandlerFunc(func(_ context.Context, request admission.Request) admission.Response {
		object := &corev1.ConfigMap{}
		if request.Operation == admissionv1.Delete {
			return admission.Allowed("")
		}
		if err := decoder.Decode(request, object); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		if object.Annotations == nil {
			object.Annotations = map[string]string{}
		}
		object.Annotations["trail"] += mark
		changed, err := json.Marshal(object)
		check(err)
		return admission.PatchResponseFromRaw(request.Object.Raw, changed)
	})
}
