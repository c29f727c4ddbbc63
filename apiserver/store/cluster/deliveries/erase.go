package deliveries

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster/objects"
)

// Erase removes those deliveries of a site whose events have one of the subjects names, compared without
// case. It first removes the WebhookDeliveries, pending ones included, and then the entries of the
// WebhookDeliveryLogs. An attempt that is in flight during the call can still add its delivery to the
// log. Errors: store.ErrUnavailable.
func Erase(ctx context.Context, client *objects.Client, namespace, key string, names []string) error {
	of := subjectsOf(names)
	l := &log{client: client, namespace: namespace, key: key}
	var ids []string
	if err := l.eachSummary(ctx, "", func(id string, s summary) {
		if of.has(s.Subject) {
			ids = append(ids, id)
		}
	}); err != nil {
		return err
	}
	for _, id := range ids {
		if err := client.Delete(ctx, objects.Delivery, namespace, id, nil); err != nil {
			return objects.StoreError("remove delivery "+id, err)
		}
	}
	return eachPage(ctx, client, objects.Logs, namespace, "spec.siteKey="+key, func(page *recordsv1.WebhookDeliveryLogList) error {
		for i := range page.Items {
			if err := l.eraseFromLog(ctx, page.Items[i].Spec.Webhook, of); err != nil {
				return err
			}
		}
		return nil
	})
}

// subjects is a set of subjects of events, in lower case.
type subjects map[string]bool

func subjectsOf(names []string) subjects {
	set := subjects{}
	for _, name := range names {
		set[strings.ToLower(name)] = true
	}
	return set
}

// has reports whether a subject is in the set. Case is ignored.
func (s subjects) has(subject string) bool { return s[strings.ToLower(subject)] }

// eraseFromLog removes the deliveries with one of the subjects from the WebhookDeliveryLog of a webhook.
// The next write of the log by the delivery process fails with a conflict, and the process reads the log
// again.
func (l *log) eraseFromLog(ctx context.Context, webhook string, of subjects) error {
	for range maxConflicts {
		r, err := readRing(ctx, l.client, l.namespace, l.key, webhook)
		if err != nil {
			return err
		}
		before := len(r.done)
		r.done = slices.DeleteFunc(r.done, func(d delivered) bool { return of.has(d.Subject) })
		if len(r.done) == before {
			return nil
		}
		err = r.write(ctx, l.client, l.namespace, l.key, webhook)
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
			return objects.StoreError("write delivery log "+logName(webhook), err)
		}
	}
	return fmt.Errorf("remove deliveries from the log of webhook %s: the log changed during each of %d attempts: %w", webhook, maxConflicts, store.ErrUnavailable)
}
