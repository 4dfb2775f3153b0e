// Writes the table of Kubernetes' own types: for every kind of the registry the fields of its
// structs with their JSON name, protobuf number, type, and what patches do there. Everything is
// read from struct tags by reflection and from the markers in the comments of the same
// sources; run it with `cargo xtask types` after changing the versions in go.mod.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	apps "k8s.io/api/apps/v1"
	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	certificates "k8s.io/api/certificates/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	events "k8s.io/api/events/v1"
	flowcontrol "k8s.io/api/flowcontrol/v1"
	networking "k8s.io/api/networking/v1"
	node "k8s.io/api/node/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	resource "k8s.io/api/resource/v1"
	scheduling "k8s.io/api/scheduling/v1"
	storage "k8s.io/api/storage/v1"
	storagemigration "k8s.io/api/storagemigration/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// Types with an encoding of their own, by Go name, and how the table calls them.
var special = map[string]string{
	"k8s.io/apimachinery/pkg/util/intstr.IntOrString":                                       "intorstring",
	"k8s.io/apimachinery/pkg/api/resource.Quantity":                                         "quantity",
	"k8s.io/apimachinery/pkg/apis/meta/v1.Time":                                             "time",
	"k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime":                                        "microtime",
	"k8s.io/apimachinery/pkg/apis/meta/v1.Duration":                                         "duration",
	"k8s.io/apimachinery/pkg/apis/meta/v1.FieldsV1":                                         "raw",
	"k8s.io/apimachinery/pkg/runtime.RawExtension":                                          "raw",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSON":                         "raw",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrBool":        "schemaorbool",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrArray":       "schemaorarray",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrStringArray": "schemaortexts",
	"k8s.io/api/authentication/v1.ExtraValue":                                               "texts",
	"k8s.io/api/authorization/v1.ExtraValue":                                                "texts",
	"k8s.io/api/certificates/v1.ExtraValue":                                                 "texts",
}

// Kinds that are sent to sub-resources or beside an object.
var extras = []string{
	"v1 Status", "v1 DeleteOptions", "v1 Binding", "v1 ObjectReference",
	"autoscaling/v1 Scale", "policy/v1 Eviction", "authentication.k8s.io/v1 TokenRequest",
}

type generator struct {
	lines map[string]string
	marks *markers
}

func main() {
	if len(os.Args) != 3 {
		fail("usage: types REGISTRY TABLE")
	}
	scheme := scheme()
	kinds := append(registered(os.Args[1]), extras...)
	sort.Strings(kinds)
	g := &generator{lines: map[string]string{}, marks: newMarkers()}
	var out strings.Builder
	for i, kind := range kinds {
		if i > 0 && kinds[i-1] == kind {
			continue
		}
		version, name, _ := strings.Cut(kind, " ")
		object, err := scheme.New(schema.FromAPIVersionAndKind(version, name))
		check(err)
		fmt.Fprintf(&out, "kind %s %s %s\n", version, name, g.name(reflect.TypeOf(object).Elem()))
	}
	var names []string
	for name := range g.lines {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		fmt.Fprintf(&out, "%s%s\n", name, g.lines[name])
	}
	check(os.WriteFile(os.Args[2], []byte(out.String()), 0o644))
}

func scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionregistration.AddToScheme, apps.AddToScheme, authentication.AddToScheme,
		authorization.AddToScheme, autoscalingv1.AddToScheme, autoscaling.AddToScheme,
		batch.AddToScheme, certificates.AddToScheme, coordination.AddToScheme, core.AddToScheme,
		discovery.AddToScheme, events.AddToScheme, flowcontrol.AddToScheme,
		networking.AddToScheme, node.AddToScheme, policy.AddToScheme, rbac.AddToScheme,
		resource.AddToScheme, scheduling.AddToScheme, storage.AddToScheme,
		storagemigration.AddToScheme, apiextensions.AddToScheme, apiregistration.AddToScheme,
	} {
		check(add(scheme))
	}
	scheme.AddKnownTypes(schema.GroupVersion{Version: "v1"}, &meta.Status{}, &meta.DeleteOptions{})
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Version: "v1", Kind: "ObjectReference"}, &core.ObjectReference{})
	return scheme
}

// The kinds of the registry, as "apiVersion kind".
func registered(path string) []string {
	file, err := os.Open(path)
	check(err)
	defer file.Close()
	var kinds []string
	for lines := bufio.NewScanner(file); lines.Scan(); {
		cells := strings.Split(lines.Text(), "|")
		if len(cells) > 2 && !strings.HasPrefix(cells[0], "#") {
			kinds = append(kinds, strings.TrimSpace(cells[0])+" "+strings.TrimSpace(cells[2]))
		}
	}
	return kinds
}

// The table's name of a struct, whose line is written if it is new.
func (g *generator) name(of reflect.Type) string {
	parts := strings.Split(of.PkgPath(), "/")
	name := strings.Join(parts[len(parts)-2:], ".") + "." + of.Name()
	if _, seen := g.lines[name]; seen {
		return name
	}
	g.lines[name] = ""
	if _, custom := reflect.New(of).Interface().(json.Marshaler); custom {
		fail("%v encodes itself: it needs a name of its own", of)
	}
	line := ""
	if g.marks.ofType(of)["structType"] == "atomic" || g.marks.ofType(of)["mapType"] == "atomic" {
		line = " atomic"
	}
	for i := range of.NumField() {
		if field := g.field(of, of.Field(i)); field != "" {
			line += "; " + field
		}
	}
	g.lines[name] = line
	return name
}

func (g *generator) field(of reflect.Type, field reflect.StructField) string {
	name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
	if name == "-" {
		return ""
	}
	number := "0"
	if protobuf := strings.Split(field.Tag.Get("protobuf"), ","); len(protobuf) > 1 {
		number = protobuf[1]
	}
	if name == "" && field.Anonymous {
		return "- " + number + " " + g.typeName(field.Type)
	}
	if name == "" {
		fail("%v.%s has no JSON name", of, field.Name)
	}
	words := []string{name, number, g.typeName(field.Type)}
	words = append(words, presence(field.Type, options)...)
	words = append(words, g.patch(field)...)
	return strings.Join(append(words, g.apply(of, field)...), " ")
}

// A field without a "?" is in every encoding: Go leaves structs out for `omitzero` only.
func presence(of reflect.Type, options string) []string {
	omitempty := strings.Contains(options, "omitempty") && of.Kind() != reflect.Struct
	if omitempty || strings.Contains(options, "omitzero") {
		return []string{"?"}
	}
	return nil
}

func (g *generator) patch(field reflect.StructField) []string {
	var words []string
	for _, strategy := range strings.Split(field.Tag.Get("patchStrategy"), ",") {
		switch strategy {
		case "":
		case "merge":
			words = append(words, "merge="+field.Tag.Get("patchMergeKey"))
		case "replace", "retainKeys":
			words = append(words, strategy)
		default:
			fail("%s has an unknown patch strategy", field.Name)
		}
	}
	return words
}

// What server-side apply takes for one value, and what tells items of a list apart.
func (g *generator) apply(of reflect.Type, field reflect.StructField) []string {
	marks := g.marks.ofField(of, field.Name)
	named := field.Type
	if named.Kind() == reflect.Pointer {
		named = named.Elem()
	}
	for mark, value := range g.marks.ofType(named) {
		if _, own := marks[mark]; !own && named.Kind() != reflect.Struct {
			marks[mark] = value
		}
	}
	var words []string
	switch marks["listType"] {
	case "map":
		words = append(words, "keys="+marks["listMapKey"])
	case "set":
		words = append(words, "set")
	case "atomic", "":
	default:
		fail("%v.%s has an unknown list type", of, field.Name)
	}
	if value := marks["structType"] + marks["mapType"]; value == "atomic" || value == "granular" {
		words = append(words, value)
	}
	if value := marks["default"]; value != "" && !strings.Contains(value, "ref(") && value != "{}" {
		words = append(words, "default="+value)
	}
	return words
}

func (g *generator) typeName(of reflect.Type) string {
	if name, is := special[of.PkgPath()+"."+of.Name()]; is {
		return name
	}
	switch of.Kind() {
	case reflect.Pointer:
		return "*" + g.typeName(of.Elem())
	case reflect.Slice:
		if of.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		return "[]" + g.typeName(of.Elem())
	case reflect.Map:
		if of.Key().Kind() != reflect.String {
			fail("%v has keys that are no text", of)
		}
		return "{}" + g.typeName(of.Elem())
	case reflect.Struct:
		return g.name(of)
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "bool"
	case reflect.Int32, reflect.Int64, reflect.Float64:
		return of.Kind().String()
	}
	fail("%v is of a kind that the table has no word for", of)
	return ""
}

func check(err error) {
	if err != nil {
		fail("%v", err)
	}
}

func fail(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, "error: "+format+"\n", arguments...)
	os.Exit(1)
}
