// Package pagetoken creates and rotates the keys that sign page tokens, hold tokens and calendar
// feed URLs. Each purpose has a key ring of its own. See docs/decisions/0012.
package pagetoken

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/paddock-health/paddock/controllers/apply"
)

const (
	// dataKey is the key in the Secret's data of the first signing key of page tokens, in base64. API
	// servers of releases up to v0.1 read it, and an administrator may write it. API servers of later
	// releases read the ring of page tokens, which initially has this key.
	dataKey = "key"
	// size is the length of a signing key in bytes. The API servers accept no other length.
	size = 32
	// interval is the interval between calls of Keep. A deleted Secret is created again within it.
	interval = time.Minute
)

// MalformedKey is the reason of the event for a Secret with a key that the API servers cannot use.
const MalformedKey = "MalformedKey"

// Keeper maintains the Secret with the keys that sign page tokens, hold tokens and calendar feed
// URLs. It is a Runnable of a manager and runs only in the leader. Keep must not be called
// concurrently.
type Keeper struct {
	// Client writes to kube-apiserver.
	Client client.Client
	// Live reads from kube-apiserver, because the cache of the manager does not hold this Secret.
	Live client.Reader
	// Recorder records events about the Secret.
	Recorder events.EventRecorder
	// Secret names the Secret with the keys.
	Secret client.ObjectKey
	// Now is the clock.
	Now func() time.Time

	// kept is true if this Keeper has found or created a key. If the Secret is missing after that,
	// someone deleted it to get a new key.
	kept bool
	// reported is the resourceVersion of the malformed Secret in the last event.
	reported string
}

// +kubebuilder:rbac:groups="",resources=secrets,namespace=paddock-system,verbs=get;list;create;patch

// Start implements manager.Runnable. It calls Keep once per interval until ctx is done, and logs
// errors.
func (k *Keeper) Start(ctx context.Context) error {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := k.Keep(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "cannot maintain the keys of tokens; the controller will retry", "secret", k.Secret)
		}
	}, interval)
	return nil
}

// Keep creates missing keys and rotates those that are due. If the API servers cannot use a key,
// Keep does not change it and returns an error.
func (k *Keeper) Keep(ctx context.Context) error {
	secret := &corev1.Secret{}
	if err := k.Live.Get(ctx, k.Secret, secret); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read Secret %s: %w", k.Secret, err)
	}
	key, stored := secret.Data[dataKey]
	source := ""
	switch {
	case stored && !valid(key):
		return k.reportMalformed(secret, dataKey)
	case !stored:
		var err error
		if key, source, err = k.firstKey(ctx); err != nil {
			return err
		}
	}
	data := map[string][]byte{dataKey: key}
	for _, ring := range rings {
		text, malformed := k.keepRing(secret.Data[ring.name], ring.name, ring.life, key)
		if malformed {
			return k.reportMalformed(secret, ring.name)
		}
		data[ring.name] = text
	}
	if !contains(secret.Data, data) {
		if err := k.write(ctx, secret, data); err != nil {
			return err
		}
		log.FromContext(ctx).Info("wrote the keys of tokens", "secret", k.Secret, "newKey", source)
	}
	k.kept = true
	return nil
}

// firstKey finds or creates the first key of page tokens. source describes the origin of the key.
func (k *Keeper) firstKey(ctx context.Context) (key []byte, source string, err error) {
	if !k.kept {
		if key, source, err = k.formerKey(ctx); key != nil || err != nil { // former.go
			return key, source, err
		}
	}
	return newKey(), "random bytes", nil
}

// contains reports whether data has all entries of wanted. data may also have entries of an administrator.
func contains(data, wanted map[string][]byte) bool {
	for name, text := range wanted {
		if have, ok := data[name]; !ok || !bytes.Equal(have, text) {
			return false
		}
	}
	return true
}

// keepRing returns the next state of a stored ring. malformed reports whether the stored ring
// cannot be parsed. A new ring of page tokens begins with pageKey, and other new rings with a
// random key.
func (k *Keeper) keepRing(stored []byte, name string, life time.Duration, pageKey []byte) (text []byte, malformed bool) {
	now := k.Now().UTC().Truncate(time.Second)
	if len(stored) == 0 {
		first := entry{newKey(), now}
		if name == rings[0].name {
			first.key = bytes.TrimSpace(pageKey)
		}
		return formatRing([]entry{first}), false
	}
	ring, ok := parseRing(stored)
	if !ok {
		return nil, true
	}
	if next := rotate(ring, life, now, newKey); len(next) != len(ring) || !bytes.Equal(next[0].key, ring[0].key) {
		return formatRing(next), false
	}
	return stored, false
}

// write updates the Secret that was read, or creates it. It fails if the Secret has changed since. An
// update takes over fields that an administrator, or the creation by this function, has set.
func (k *Keeper) write(ctx context.Context, read *corev1.Secret, data map[string][]byte) error {
	var err error
	if read.UID == "" {
		err = k.Client.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: k.Secret.Namespace, Name: k.Secret.Name},
			Data:       data,
		}, apply.FieldOwner)
	} else {
		config := corev1ac.Secret(k.Secret.Name, k.Secret.Namespace).
			WithUID(read.UID).WithResourceVersion(read.ResourceVersion).WithData(data)
		err = k.Client.Apply(ctx, config, apply.FieldOwner, client.ForceOwnership)
	}
	if err != nil {
		return fmt.Errorf("write Secret %s: %w", k.Secret, err)
	}
	return nil
}

// reportMalformed records an event, once per resourceVersion of the Secret, and returns an error.
// Neither contains the key.
func (k *Keeper) reportMalformed(secret *corev1.Secret, name string) error {
	const fault = "data.%s is malformed, and API servers may fail to start with it. A key is %d bytes in base64; in a key ring, " +
		"its creation time in RFC 3339 can follow. Write a valid value, or delete the Secret to let the controller create one, " +
		"which invalidates all page tokens, hold tokens and calendar feed URLs"
	if k.reported != secret.ResourceVersion {
		k.reported = secret.ResourceVersion
		k.Recorder.Eventf(secret, nil, corev1.EventTypeWarning, MalformedKey, "Keep", fault, name, size)
	}
	return fmt.Errorf("check Secret %s: "+fault, k.Secret, name, size)
}

// newKey returns a random key in the encoding of the Secret.
func newKey() []byte {
	key := make([]byte, size)
	_, _ = rand.Read(key) // crypto/rand.Read never returns an error
	return []byte(base64.StdEncoding.EncodeToString(key))
}

// valid reports whether API servers can use a key. They ignore surrounding white space.
func valid(stored []byte) bool {
	key, err := base64.StdEncoding.DecodeString(string(bytes.TrimSpace(stored)))
	return err == nil && len(key) == size
}
