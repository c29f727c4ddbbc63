package privacy

import (
	"sync"

	"github.com/paddock-health/paddock/apiserver/store"
)

const (
	// maxCached is how many conditions one Site's Rules cache. Callers to whom the same rules apply
	// share conditions, so a Site normally has only a few. At the limit, further conditions are
	// compiled for each request.
	maxCached = 1024
	// maxRulesCached is how many rules a Site may have for its conditions to be cached, because
	// each rule needs a bit of a conditionKey. With more rules, conditions are compiled for each
	// request.
	maxRulesCached = 64
)

// conditionKey is what the condition of a type depends on, except for links to other types: the
// caller's rights, and one bit for each rule whose Allow or Deny includes the caller.
type conditionKey struct {
	recordType              string
	privileged, breaksGlass bool
	allowed, denied         uint64
}

// conditionCache keeps compiled conditions. It is safe for concurrent use.
type conditionCache struct {
	mu       sync.Mutex
	compiled map[conditionKey]compiled
}

// compiled is a condition and, if it is cached, its text form (AppendText).
type compiled struct {
	condition store.Condition
	text      []byte
}

// Remember makes r cache the conditions that are compiled from its rules. The rules must not be
// changed after the call.
func (r *Rules) Remember() { r.cache = &conditionCache{compiled: map[conditionKey]compiled{}} }

// own returns the condition of a type without the condition on links, if possible from the cache.
func (v *View) own(recordType string, rights Rights) compiled {
	cache := v.Rules.cache
	if cache == nil || len(v.Rules.Rules) > maxRulesCached {
		return compiled{condition: v.compile(recordType, rights)}
	}
	key := conditionKey{recordType: recordType, privileged: rights.Privileged, breaksGlass: rights.BreaksGlass}
	for i := range v.Rules.Rules {
		rule := &v.Rules.Rules[i]
		if rule.Allow.includes(v.Caller, v.Rules.Issuers) {
			key.allowed |= 1 << i
		}
		if rule.Deny.includes(v.Caller, v.Rules.Issuers) {
			key.denied |= 1 << i
		}
	}
	cache.mu.Lock()
	own, known := cache.compiled[key]
	cache.mu.Unlock()
	if known {
		return own
	}
	own.condition = v.compile(recordType, rights)
	own.text = AppendText(nil, own.condition)
	cache.mu.Lock()
	defer cache.mu.Unlock()
	if len(cache.compiled) < maxCached {
		cache.compiled[key] = own
	}
	return own
}
