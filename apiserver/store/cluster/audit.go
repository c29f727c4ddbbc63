package cluster

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/store/cluster/objects"
)

const (
	// segmentSize is the uncompressed size in bytes of the lines of a segment at which further entries
	// go to another segment. A line has only what differs from the line before. Compression makes the
	// lines smaller than a half.
	segmentSize = 128 << 10
	// frameSize is the uncompressed size in bytes at which the newest lines become a frame of the
	// segment. Smaller newest lines are in an AuditSegment of their own, which each batch writes again.
	frameSize = 32 << 10
	// MaxAuditBytes is the maximum compressed size in bytes of all AuditSegments of a site. At the limit,
	// Append fails until Trim has deleted segments that are older than the retention.
	MaxAuditBytes = 32 << 20
	// segmentsKnown is the time after which the size of all segments of a site is counted again.
	segmentsKnown = time.Minute
	// sizeAnnotation is the annotation with the compressed size in bytes of the entries of a
	// segment. With it, the size of a log is counted without reading the entries.
	sizeAnnotation = "records.paddock.health/size"
	// segmentPrefix is the prefix of the names of segments. The start of the hour follows it, in
	// seconds since 1970.
	segmentPrefix = "audit-"
)

// Place identifies the data of a site by namespace and site key. Stores with the same Place are
// stores of the same site.
type Place struct{ Namespace, Key string }

// Place returns the Place of the site's data.
func (s *Store) Place() Place { return Place{s.namespace, s.key} }

// Audit returns the storage of the audit log of the site. Each replica writes its own
// AuditSegments, so that replicas do not wait for each other.
func (s *Store) Audit() audit.Storage { return &auditLog{Store: s, open: map[time.Time]*segment{}} }

type auditLog struct {
	*Store

	mu sync.Mutex
	// open are the segments to which this replica may still add entries, by hour.
	open map[time.Time]*segment
	// bytes is the compressed size of all segments at the last count, plus the size that this replica
	// has added since then. counted is the time of the last count.
	bytes   int64
	counted time.Time
}

// segment has the entries that this replica adds to the log of one hour. They are in two
// AuditSegments, sealed and newest. Most writes replace only newest, which is small. When the tail has
// frameSize bytes, it is added to sealed.
type segment struct {
	hour time.Time
	// sealed is the AuditSegment with frames, the compressed lines of complete frames. newest is the
	// AuditSegment with the tail. After a tail was added to sealed, newest has the same lines until the
	// next write replaces them. Search returns such lines once.
	sealed, newest auditObject
	frames         []byte
	// tail are the lines after the frames, uncompressed. The first one is a whole entry.
	tail []byte
	// last is the entry of the last line of the tail. It is nil if the tail is empty.
	last *audit.Entry
	// size is the uncompressed size of all lines in bytes.
	size int
	// inFrames and inTail are the numbers of entries in frames and in tail.
	inFrames, inTail int32
}

// auditObject is an AuditSegment in kube-apiserver.
type auditObject struct {
	// meta is the metadata of the written object. Its name is empty before the first write.
	meta metav1.ObjectMeta
	// stored is the compressed size in bytes of the entries in the written object.
	stored int64
}

// Append implements audit.Storage. If the write of a segment fails, further entries go to a new
// segment. If the caller repeats Append then, entries may be in two segments. Search returns them
// once.
func (l *auditLog) Append(ctx context.Context, entries []*audit.Entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.checkSize(ctx); err != nil {
		return err
	}
	if err := l.add(ctx, entries); err != nil {
		clear(l.open)
		return objects.StoreError("write an audit segment", err)
	}
	for hour := range l.open { // later entries of that hour start a new segment
		if l.engine.now().Sub(hour) > 2*time.Hour {
			delete(l.open, hour)
		}
	}
	return nil
}

// add writes the entries. The caller holds mu.
func (l *auditLog) add(ctx context.Context, entries []*audit.Entry) error {
	var changed []*segment
	for _, e := range entries {
		hour := e.Time.UTC().Truncate(time.Hour)
		s := l.open[hour]
		if s == nil {
			s = &segment{hour: hour}
			l.open[hour] = s
		}
		if s.size >= segmentSize { // continue in another object
			if err := l.seal(ctx, s); err != nil {
				return err
			}
			*s = segment{hour: hour, newest: s.newest, tail: s.tail}
		}
		if !slices.Contains(changed, s) {
			changed = append(changed, s)
		}
		before := len(s.tail)
		s.tail = append(e.AppendAfter(s.tail, s.last), '\n')
		s.size += len(s.tail) - before
		s.last = e
		s.inTail++
	}
	for _, s := range changed {
		if len(s.tail) >= frameSize {
			if err := l.seal(ctx, s); err != nil {
				return err
			}
			continue
		}
		if err := l.write(ctx, s.hour, &s.newest, objects.Compress(s.tail, nil), s.inTail); err != nil {
			return err
		}
	}
	return nil
}

// seal adds the tail to the frames. It does nothing if the tail is empty.
func (l *auditLog) seal(ctx context.Context, s *segment) error {
	if len(s.tail) == 0 {
		return nil
	}
	frames := objects.Compress(s.tail, slices.Clip(s.frames))
	if err := l.write(ctx, s.hour, &s.sealed, frames, s.inFrames+s.inTail); err != nil {
		return err
	}
	s.frames, s.tail, s.last = frames, s.tail[:0], nil
	s.inFrames, s.inTail = s.inFrames+s.inTail, 0
	return nil
}

// errAuditFull means that the audit log of the site has reached MaxAuditBytes.
var errAuditFull = fmt.Errorf("the audit log has reached its maximum of %d MiB in Kubernetes objects; shorten spec.audit.retention, or use a site with storage.type Postgres", MaxAuditBytes>>20)

func (l *auditLog) checkSize(ctx context.Context) error {
	if l.engine.now().Sub(l.counted) > segmentsKnown {
		if _, err := l.segments(ctx); err != nil {
			return err
		}
	}
	if l.bytes >= MaxAuditBytes {
		l.counted = time.Time{} // Count again at the next call, because segments may be deleted by then.
		return errAuditFull
	}
	return nil
}

// write replaces the entries of an object, which it creates if needed.
func (l *auditLog) write(ctx context.Context, hour time.Time, to *auditObject, entries []byte, count int32) error {
	obj := &recordsv1.AuditSegment{
		TypeMeta:   metav1.TypeMeta{APIVersion: recordsv1.GroupVersion.String(), Kind: "AuditSegment"},
		ObjectMeta: to.meta,
		Spec:       recordsv1.AuditSegmentSpec{SiteKey: l.key, Hour: metav1.NewTime(hour), Count: count, Entries: entries},
	}
	obj.Annotations = map[string]string{sizeAnnotation: strconv.Itoa(len(entries))}
	obj.ManagedFields = objects.NoManagedFields
	var written metav1.ObjectMeta
	var err error
	if to.meta.Name == "" {
		obj.Name, obj.Namespace = segmentPrefix+strconv.FormatInt(hour.Unix(), 10)+"-"+strings.ToLower(rand.Text()), l.namespace
		written, err = l.engine.client.Create(ctx, objects.Segments, l.namespace, obj)
	} else {
		written, err = l.engine.client.Update(ctx, objects.Segments, l.namespace, obj.Name, obj)
	}
	if err != nil {
		return err
	}
	l.bytes += int64(len(entries)) - to.stored
	to.meta, to.stored = written, int64(len(entries))
	return nil
}

// segmentInfo is a segment without its entries.
type segmentInfo struct {
	name string
	hour time.Time
}

// segments returns the segments of the site, the newest hour first, and counts their size. The
// caller holds mu.
func (l *auditLog) segments(ctx context.Context) ([]segmentInfo, error) {
	list, err := l.engine.client.ListMetadata(ctx, objects.Segments, l.namespace, metav1.ListOptions{FieldSelector: "spec.siteKey=" + l.key})
	if err != nil {
		return nil, objects.StoreError("list audit segments", err)
	}
	var infos []segmentInfo
	var size int64
	for i := range list.Items {
		info := segmentInfo{name: list.Items[i].Name}
		seconds, _, _ := strings.Cut(strings.TrimPrefix(info.name, segmentPrefix), "-")
		at, err := strconv.ParseInt(seconds, 10, 64)
		if err != nil {
			continue // another program created it
		}
		info.hour = time.Unix(at, 0).UTC()
		infos = append(infos, info)
		bytes, _ := strconv.ParseInt(list.Items[i].Annotations[sizeAnnotation], 10, 64)
		size += bytes
	}
	slices.SortFunc(infos, func(a, b segmentInfo) int { return b.hour.Compare(a.hour) })
	l.bytes, l.counted = size, l.engine.now()
	return infos, nil
}

// Search implements audit.Storage. It reads all segments of one hour before the next one, because
// entries of several replicas must be merged by time.
func (l *auditLog) Search(ctx context.Context, query audit.Query) ([]audit.Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, objects.Timeout)
	defer cancel()
	l.mu.Lock()
	infos, err := l.segments(ctx)
	l.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if query.After != (audit.Position{}) {
		if last := time.UnixMicro(query.After.Time + 1); query.Until.IsZero() || last.Before(query.Until) {
			query.Until = last
		}
	}
	var found []audit.Entry
	for len(infos) > 0 && len(found) < query.Count {
		hour, n := infos[0].hour, 0
		for n < len(infos) && infos[n].hour.Equal(hour) {
			n++
		}
		of := infos[:n]
		infos = infos[n:]
		if !query.From.IsZero() && !hour.Add(time.Hour).After(query.From) {
			break
		}
		if !query.Until.IsZero() && !hour.Before(query.Until) {
			continue
		}
		matches, err := l.searchHour(ctx, of, query)
		if errors.Is(err, context.DeadlineExceeded) {
			return nil, audit.ErrTooSlow
		}
		if err != nil {
			return nil, err
		}
		found = append(found, matches...)
	}
	return found[:min(len(found), query.Count)], nil
}

// searchHour returns the matching entries in the segments of one hour, newest first.
func (l *auditLog) searchHour(ctx context.Context, infos []segmentInfo, query audit.Query) ([]audit.Entry, error) {
	var found []audit.Entry
	for _, info := range infos {
		err := l.readSegment(ctx, info, func(e *audit.Entry) {
			if query.Matches(e) {
				found = append(found, *e)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(found, func(a, b audit.Entry) int {
		switch p, other := a.Position(), b.Position(); {
		case p == other:
			return 0
		case p.Before(other):
			return -1
		default:
			return 1
		}
	})
	return slices.CompactFunc(found, func(a, b audit.Entry) bool { return a.Position() == b.Position() }), nil
}

// readSegment calls visit with each entry of a segment. It does nothing for a segment that Trim has deleted
// since it was listed.
func (l *auditLog) readSegment(ctx context.Context, info segmentInfo, visit func(*audit.Entry)) error {
	var obj recordsv1.AuditSegment
	err := l.engine.client.Get(ctx, objects.Segments, l.namespace, info.name, &obj)
	if apierrors.IsNotFound(err) || err == nil && obj.Spec.SiteKey != l.key {
		return nil
	}
	if err != nil {
		return objects.StoreError("read audit segment "+info.name, err)
	}
	lines, err := objects.Decompress(obj.Spec.Entries)
	if err != nil {
		return objects.StoreError("decompress audit segment "+info.name, err)
	}
	var e audit.Entry
	for line := range bytes.Lines(lines) {
		if e, err = audit.ParseAfter(line, e); err != nil {
			return objects.StoreError("read audit segment "+info.name, err)
		}
		visit(&e)
	}
	return nil
}

// Trim implements audit.Storage. Each replica calls it. It ignores segments that another replica
// has deleted already.
func (l *auditLog) Trim(ctx context.Context, retention time.Duration) error {
	l.mu.Lock()
	infos, err := l.segments(ctx)
	l.counted = time.Time{}
	l.mu.Unlock()
	if err != nil {
		return err
	}
	before := l.engine.now().Add(-retention)
	for _, info := range infos {
		if info.hour.Add(time.Hour).After(before) {
			continue
		}
		if err := l.engine.client.Delete(ctx, objects.Segments, l.namespace, info.name, nil); err != nil {
			return objects.StoreError("delete audit segment "+info.name, err)
		}
	}
	return nil
}
