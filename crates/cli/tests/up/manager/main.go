// A manager as operators have one. `reconcile` runs two of them, of which one leads, through the
// life of an object of a kind of their own, and prints "ok"; anything unexpected ends it with an
// error. `webhooks` serves admission webhooks and prints where, for the test beside it.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"

	"k8s.io/apimachinery/pkg/runtime"
)

func main() {
	ctrl.SetLogger(logr.Discard())
	ctx, cancel := context.WithTimeout(context.Background(), 120*time.Second)
	defer cancel()
	switch os.Args[1] {
	case "reconcile":
		reconcileSites(ctx)
		fmt.Println("ok")
	case "webhooks":
		serveWebhooks(ctx)
	default:
		panic("reconcile or webhooks?")
	}
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	check(clientgoscheme.AddToScheme(scheme))
	addSites(scheme)
	return scheme
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
