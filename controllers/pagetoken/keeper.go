// Package pagetoken keeps the key that signs page tokens, tokens of holds and the addresses of
// calendars. The controller makes the key once and never replaces it. See docs/decisions/0012.
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
	// dataKey is where a Secret holds the key, in base64.
	dataKey = "key"
	// size is the length of the key in bytes, as the API servers require it.
	size = 32
	// interval is the pause between two passes, and the longest time that a deleted Secret is missing.
	interval = time.Minute
)

// MalformedKey is the reason of the event about a Secret whose key the API servers cannot use.
const MalformedKey = "MalformedKey"

// Keeper keeps the Secret with the key. It is a Runnable of a manager, which runs it on the leader
// only. Keep must not be called concurrently.
type Keeper struct {
	// Client writes.
	Client client.Client
	// Live reads past the cache, which does not hold Secrets of this type.
	Live client.Reader
	// Recorder records events about the Secret.
	Recorder events.EventRecorder
	// Secret names the Secret.
	Secret client.ObjectKey

	// kept reports whether this Keeper has found or made a key. A Secret that is missing after
	// that was deleted by someone who wants another key.
	kept bool
	// reported is the resourceVersion of the malformed Secret that the last event was about.
	reported string
}

// +kubebuilder:rbac:groups="",resources=secrets,namespace=paddock-system,verbs=get;list;create;patch

// Start implements manager.Runnable.
func (k *Keeper) Start(ctx context.Context) error {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := k.Keep(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "keep the key of page tokens", "secret", k.Secret)
		}
	}, interval)
	return nil
}

// Keep makes one pass: it makes the key if the Secret is missing or has none. It leaves a key
// that is there alone, and returns an error if the API servers cannot use it.
func (k *Keeper) Keep(ctx context.Context) error {
	secret := &corev1.Secret{}
	if err := k.Live.Get(ctx, k.Secret, secret); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read Secret %s: %w", k.Secret, err)
	}
	if stored, ok := secret.Data[dataKey]; ok {
		if !valid(stored) {
			return k.reportMalformed(secret)
		}
		k.kept = true
		return nil
	}
	key, source := newKey(), "random bytes"
	if !k.kept {
		former, from, err := k.formerKey(ctx) // former.go
		if err != nil {
			return err
		}
		if former != nil {
			key, source = former, from
		}
	}
	if err := k.write(ctx, secret, key); err != nil {
		return err
	}
	k.kept = true
	log.FromContext(ctx).Info("made the key of page tokens", "secret", k.Secret, "source", source)
	return nil
}

// write adds the key to the Secret that was read, or creates the Secret. It fails if someone else
// has written the Secret since.
func (k *Keeper) write(ctx context.Context, read *corev1.Secret, key []byte) error {
	var err error
	if read.UID == "" {
		err = k.Client.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: k.Secret.Namespace, Name: k.Secret.Name},
			Data:       map[string][]byte{dataKey: key},
		}, apply.FieldOwner)
	} else {
		config := corev1ac.Secret(k.Secret.Name, k.Secret.Namespace).
			WithUID(read.UID).WithResourceVersion(read.ResourceVersion).WithData(map[string][]byte{dataKey: key})
		err = k.Client.Apply(ctx, config, apply.FieldOwner)
	}
	if err != nil {
		return fmt.Errorf("write Secret %s: %w", k.Secret, err)
	}
	return nil
}

// reportMalformed records an event, once for each state of the Secret, and returns an error. Neither
// shows the value.
func (k *Keeper) reportMalformed(secret *corev1.Secret) error {
	const fault = "data.key is not %d bytes in base64, so that API servers do not start: write a valid key, or delete the Secret " +
		"to have the controller make one, which invalidates all page tokens and calendar addresses"
	if k.reported != secret.ResourceVersion {
		k.reported = secret.ResourceVersion
		k.Recorder.Eventf(secret, nil, corev1.EventTypeWarning, MalformedKey, "Keep", fault, size)
	}
	return fmt.Errorf("use the key in Secret %s: "+fault, k.Secret, size)
}

// newKey returns a random key as a Secret holds it.
func newKey() []byte {
	key := make([]byte, size)
	_, _ = rand.Read(key) // it never fails
	return []byte(base64.StdEncoding.EncodeToString(key))
}

// valid reports whether API servers can use a key. They ignore white space around it.
func valid(stored []byte) bool {
	key, err := base64.StdEncoding.DecodeString(string(bytes.TrimSpace(stored)))
	return err == nil && len(key) == size
}
