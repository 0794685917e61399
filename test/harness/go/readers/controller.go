// A controller as most are written: a manager with its cache, and a reconciler for each resource, which writes down what the cache has.
package main

import (
	"context"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

type controller struct {
	manager     ctrl.Manager
	reconcilers []*reconciler
}

// reconciler has what it was told of, one object after the other.
type reconciler struct {
	client    client.Client
	newObject func() client.Object
	notes     *notes
}

func newController() (*controller, error) {
	config, err := readConfig()
	if err != nil {
		return nil, err
	}
	config.UserAgent = "controller"
	errors := newNotes("controller", "errors")
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                 scheme.Scheme,
		Metrics:                server.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		Cache: cache.Options{
			DefaultWatchErrorHandler: func(ctx context.Context, reflector *toolscache.Reflector, err error) {
				if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
					errors.count("expired")
				} else {
					errors.count("failed")
				}
				toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
			},
		},
	})
	if err != nil {
		return nil, err
	}
	c := &controller{manager: manager, reconcilers: []*reconciler{{notes: errors}}}
	for resource, newObject := range map[string]func() client.Object{
		"v1/pods":             func() client.Object { return &corev1.Pod{} },
		"apps/v1/deployments": func() client.Object { return &appsv1.Deployment{} },
	} {
		r := &reconciler{client: manager.GetClient(), newObject: newObject, notes: newNotes("controller", resource)}
		name := resource[strings.LastIndex(resource, "/")+1:]
		if err := ctrl.NewControllerManagedBy(manager).Named(name).For(newObject()).Complete(r); err != nil {
			return nil, err
		}
		c.reconcilers = append(c.reconcilers, r)
	}
	return c, nil
}

func (c *controller) run(ctx context.Context) {
	if err := c.manager.Start(ctx); err != nil {
		c.reconcilers[0].notes.problem("the manager has ended: %v", err)
	}
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	r.notes.count("reconciled")
	object := r.newObject()
	key := request.String()
	err := r.client.Get(ctx, request.NamespacedName, object)
	if apierrors.IsNotFound(err) {
		r.notes.remove(key)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	uid, version := string(object.GetUID()), object.GetResourceVersion()
	if before, found := r.notes.get(key); found {
		if knownUID, known, _ := strings.Cut(before, " "); knownUID == uid && isLater(known, version) {
			r.notes.fell(key, known, version)
		}
	}
	r.notes.put(key, uid+" "+version)
	return ctrl.Result{}, nil
}

func (c *controller) seen() []seen {
	all := []seen{}
	for _, r := range c.reconcilers {
		all = append(all, r.notes.seen())
	}
	return all
}
