package main

import (
	"encoding/json"
	"fmt"
	"net/http"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Converts lamps: v1 has spec.watts, v2 has spec.milliwatts. A lamp called "broken" cannot be
// converted.
func convertLamps(w http.ResponseWriter, r *http.Request) {
	review := &apiextensionsv1.ConversionReview{}
	check(json.NewDecoder(r.Body).Decode(review))
	response := &apiextensionsv1.ConversionResponse{
		UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess},
	}
	for _, raw := range review.Request.Objects {
		lamp := map[string]any{}
		check(json.Unmarshal(raw.Raw, &lamp))
		name := lamp["metadata"].(map[string]any)["name"]
		fmt.Println("/convert", name, lamp["apiVersion"], review.Request.DesiredAPIVersion)
		if name == "broken" {
			response.Result = metav1.Status{Status: metav1.StatusFailure, Message: "it is broken"}
			break
		}
		convertLamp(lamp, review.Request.DesiredAPIVersion)
		converted, err := json.Marshal(lamp)
		check(err)
		response.ConvertedObjects = append(response.ConvertedObjects, runtime.RawExtension{Raw: converted})
	}
	review.Request, review.Response = nil, response
	w.Header().Set("Content-Type", "application/json")
	check(json.NewEncoder(w).Encode(review))
}

func convertLamp(lamp map[string]any, version string) {
	lamp["apiVersion"] = version
	spec, has := lamp["spec"].(map[string]any)
	if !has {
		return
	}
	if watts, has := spec["watts"].(float64); has && version == "lamps.example.com/v2" {
		delete(spec, "watts")
		spec["milliwatts"] = watts * 1000
	}
	if milliwatts, has := spec["milliwatts"].(float64); has && version == "lamps.example.com/v1" {
		delete(spec, "milliwatts")
		spec["watts"] = milliwatts / 1000
	}
}
