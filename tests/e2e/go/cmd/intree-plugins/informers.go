package main

import (
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/apps"
	"k8s.io/client-go/informers/core"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/informers/policy"
	"k8s.io/client-go/informers/resource"
	"k8s.io/client-go/informers/storage"
	"k8s.io/client-go/tools/cache"
)

// staticFactory makes informers that are given their objects, once, and follow no API server. Upstream's own tests start
// informers on a fake client, which takes a tenth of a second a case.
type staticFactory struct {
	informers.SharedInformerFactory // for the groups of which a case has no objects
	byType                          map[reflect.Type]*staticInformer
}

func newStaticFactory() *staticFactory {
	return &staticFactory{informers.NewSharedInformerFactory(nil, 0), map[reflect.Type]*staticInformer{}}
}

func (f *staticFactory) InformerFor(
	object runtime.Object, make internalinterfaces.NewInformerFunc,
) cache.SharedIndexInformer {
	kind := reflect.TypeOf(object)
	if f.byType[kind] == nil {
		f.byType[kind] = &staticInformer{SharedIndexInformer: make(nil, 0)}
	}
	return f.byType[kind]
}

func (f *staticFactory) Apps() apps.Interface         { return apps.New(f, "", nil) }
func (f *staticFactory) Core() core.Interface         { return core.New(f, "", nil) }
func (f *staticFactory) Policy() policy.Interface     { return policy.New(f, "", nil) }
func (f *staticFactory) Resource() resource.Interface { return resource.New(f, "", nil) }
func (f *staticFactory) Storage() storage.Interface   { return storage.New(f, "", nil) }

// load gives the informers their objects. One that no plugin asked for is left out.
func (f *staticFactory) load(objects []runtime.Object) error {
	for _, object := range objects {
		informer := f.byType[reflect.TypeOf(object)]
		if informer == nil {
			continue
		}
		if err := informer.GetIndexer().Add(object); err != nil {
			return fmt.Errorf("%T: %w", object, err)
		}
		for _, handler := range informer.handlers {
			handler.OnAdd(object, true)
		}
	}
	return nil
}

// staticInformer is never started; it keeps its handlers for load.
type staticInformer struct {
	cache.SharedIndexInformer
	handlers []cache.ResourceEventHandler
}

func (i *staticInformer) AddEventHandler(
	handler cache.ResourceEventHandler,
) (cache.ResourceEventHandlerRegistration, error) {
	i.handlers = append(i.handlers, handler)
	return registration{}, nil
}

func (i *staticInformer) AddEventHandlerWithResyncPeriod(
	handler cache.ResourceEventHandler, _ time.Duration,
) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(handler)
}

func (i *staticInformer) AddEventHandlerWithOptions(
	handler cache.ResourceEventHandler, _ cache.HandlerOptions,
) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(handler)
}

func (i *staticInformer) HasSynced() bool { return true }

type registration struct {
	cache.ResourceEventHandlerRegistration
}

func (registration) HasSynced() bool { return true }
