package objects

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
)

// watchBackoff has the pauses between requests for a watch while kube-apiserver is unavailable: they double from 0.1 s to 2 s,
// and each is extended by up to its length. The default of cache.Reflector reaches a minute, for which deliveries would stop
// and searches would miss the writes of other replicas after kube-apiserver is back.
var watchBackoff = wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Steps: 10, Cap: 2 * time.Second, Jitter: 1}

// RunReflector keeps a store current by a list and a watch of objects of a type until ctx ends. It logs errors under name.
func RunReflector(ctx context.Context, name string, from cache.ListerWatcher, expectedType any, store cache.ReflectorStore) {
	backoff := watchBackoff
	cache.NewReflectorWithOptions(from, expectedType, store, cache.ReflectorOptions{Name: name, Backoff: &backoff}).RunWithContext(ctx)
}
