package objects

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
)

// watchBackoff has the pauses between requests for a watch while kube-apiserver is unavailable. They
// double from 0.1 s to 2 s, and each is extended by a random time of up to its length. The default pauses
// of cache.Reflector reach a minute. For so long after kube-apiserver is back, deliveries would stop, and
// searches would miss the writes of other replicas.
var watchBackoff = wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Steps: 10, Cap: 2 * time.Second, Jitter: 1}

// RunReflector keeps a store current by a list and a watch of objects of a type until ctx ends. It logs
// errors under name.
func RunReflector(ctx context.Context, name string, from cache.ListerWatcher, expectedType any, store cache.ReflectorStore) {
	backoff := watchBackoff
	cache.NewReflectorWithOptions(from, expectedType, store, cache.ReflectorOptions{Name: name, Backoff: &backoff}).RunWithContext(ctx)
}
