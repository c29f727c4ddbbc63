package kubernetes

import (
	"sync"
	"time"

	utilcache "k8s.io/apimachinery/pkg/util/cache"
)

const (
	// maxGranted and maxRefused are how many results of each kind are cached for one Site. At the
	// limit the least recently used result is evicted. The limits are separate, so that refusals
	// never evict rights.
	maxGranted, maxRefused = 2048, 512
	// maxSites is how many Sites have caches. At the limit those of the least recently used Site are
	// evicted. siteTTL is how long after their creation the caches of a Site are dropped.
	maxSites = 8192
	siteTTL  = time.Hour
)

// resultCache caches results of one kind for one Site. It is safe for concurrent use.
type resultCache struct {
	granted, refused *utilcache.LRUExpireCache
}

func newResultCache() resultCache {
	return resultCache{granted: utilcache.NewLRUExpireCache(maxGranted), refused: utilcache.NewLRUExpireCache(maxRefused)}
}

// get returns a result, or nil.
func (c resultCache) get(key any) *result {
	found, ok := c.granted.Get(key)
	if !ok {
		found, ok = c.refused.Get(key)
	}
	if !ok {
		return nil
	}
	return found.(*result)
}

func (c resultCache) add(key any, r *result, ttl time.Duration) {
	to, other := c.granted, c.refused
	if !r.allowed {
		to, other = c.refused, c.granted
	}
	to.Add(key, r, ttl)
	other.Remove(key)
}

// siteCache caches the rights of one Site's callers.
type siteCache struct {
	rights   resultCache // by rightKey
	verdicts resultCache // of HasAnyRight, by access.Caller.Identity
}

// siteCaches are the caches of up to maxSites Sites, by namespace. Up to that number, no Site evicts
// results of another.
type siteCaches struct {
	mu    sync.Mutex
	sites *utilcache.LRUExpireCache
}

func newSiteCaches() *siteCaches {
	return &siteCaches{sites: utilcache.NewLRUExpireCache(maxSites)}
}

// of returns the cache of a Site, and creates it if needed.
func (c *siteCaches) of(namespace string) *siteCache {
	if found, ok := c.sites.Get(namespace); ok {
		return found.(*siteCache)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if found, ok := c.sites.Get(namespace); ok {
		return found.(*siteCache)
	}
	made := &siteCache{rights: newResultCache(), verdicts: newResultCache()}
	c.sites.Add(namespace, made, siteTTL)
	return made
}
