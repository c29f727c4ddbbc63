package fhir

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/web"
)

// exportFile serves GET …/$export/{job}/{file}: it reads the records of a file from the storage, as
// the caller may see them now. Bulk Data Access 2.0, "Bulk Data Output File Request".
func (h *handler) exportFile(w http.ResponseWriter, r *request) error {
	_, job, err := r.exportJob(h.Now())
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(web.PathParameter(r.Request, "file"))
	if err != nil || n < 1 || n > len(job.Files) || !job.Ready {
		return store.ErrNotFound
	}
	plan, err := h.exportPlan(r, job)
	if err != nil {
		return err
	}
	body, err := r.renderFile(job, job.Files[n-1], plan)
	if err != nil {
		return err
	}
	web.Respond(w, r.Request, http.StatusOK, ndjsonContentType, body)
	return nil
}

// renderFile returns the lines of a file, and adds their records to the audit entry.
func (r *request) renderFile(job *exportJob, file plannedFile, plan plannedExport) ([]byte, error) {
	query := plan.queries[file.Type]
	query.After, query.Consistent = file.After, true
	var body []byte
	ctx := audit.Without(r.Context())
	for {
		page, err := r.site.Store.Search(ctx, query)
		if err != nil {
			return nil, err
		}
		for _, rec := range page.Records {
			if rec.Created.UnixMilli() > file.LastCreated || file.NextID != "" && strings.EqualFold(rec.Key.ID, file.NextID) {
				return body, nil
			}
			at, ok, err := r.versionAt(rec, job)
			if err != nil {
				return nil, err
			}
			if ok {
				audit.From(r.Context()).AddRead(at.Key)
				start := len(body)
				if body, err = render(body, at, plan.projections[file.Type]); err != nil {
					return nil, err
				}
				joinLines(body[start:])
				body = append(body, '\n')
			}
			if strings.EqualFold(rec.Key.ID, file.LastID) {
				return body, nil
			}
		}
		if page.Next == nil {
			return body, nil
		}
		query.After, query.Consistent = page.Next, false
	}
}

// versionAt returns the version of a live record that was current at the transaction time of an
// export. It is the newest one if that version is not stored any more, is hidden from the caller, or
// is not one of the newest maxVersionsBack. versionAt returns false if the record did not exist or was
// deleted at that time, or if the version is not later than _since.
func (r *request) versionAt(rec store.Record, job *exportJob) (store.Record, bool, error) {
	if rec.Created.UnixMilli() > job.Time {
		return rec, false, nil
	}
	at, ctx := rec, audit.Without(r.Context())
	for range maxVersionsBack {
		if at.Updated.UnixMilli() <= job.Time {
			return at, !at.Deleted && at.Updated.UnixMilli() > job.Since, nil
		}
		if at.Version == 1 {
			return rec, false, nil
		}
		earlier, err := r.site.Store.GetVersion(ctx, at.Key, at.Version-1)
		if store.IsAbsent(err) {
			break
		}
		if err != nil {
			return rec, false, err
		}
		at = earlier
	}
	return rec, true, nil
}

// joinLines replaces the line breaks of a record by spaces. These line breaks are white space between
// tokens, because JSON escapes line breaks in strings (RFC 8259 §7).
func joinLines(record []byte) {
	for i, b := range record {
		if b == '\n' || b == '\r' {
			record[i] = ' '
		}
	}
}
