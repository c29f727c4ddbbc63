package limits

import "container/list"

// recent keeps the most recently used values, at most the number most. It is not safe for concurrent
// use.
type recent[K comparable, V any] struct {
	most   int
	order  *list.List // of item, the latest first
	places map[K]*list.Element
}

type item[K comparable, V any] struct {
	key   K
	value V
}

func newRecent[K comparable, V any](most int) *recent[K, V] {
	return &recent[K, V]{most: most, order: list.New(), places: map[K]*list.Element{}}
}

func (r *recent[K, V]) get(key K) (value V, found bool) {
	place, found := r.places[key]
	if !found {
		return value, false
	}
	r.order.MoveToFront(place)
	return place.Value.(item[K, V]).value, true
}

// add adds a value under a key that has none. At the limit it evicts the least recently used value.
func (r *recent[K, V]) add(key K, value V) {
	r.places[key] = r.order.PushFront(item[K, V]{key, value})
	if r.order.Len() > r.most {
		last := r.order.Back()
		r.order.Remove(last)
		delete(r.places, last.Value.(item[K, V]).key)
	}
}
