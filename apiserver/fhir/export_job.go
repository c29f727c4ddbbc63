package fhir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/limits"
	"github.com/paddock-health/paddock/apiserver/settings"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/web"
)

const (
	// exportLifetime is how long the files of an export can be downloaded once it is complete.
	exportLifetime = 24 * time.Hour
	// exportIdle is how long an incomplete export is kept after the last request for its status.
	exportIdle = 10 * time.Minute
	// defaultMaxExports is the maximum number of incomplete exports at a Site that does not set
	// limits.concurrentExports. A further export is refused with 429.
	defaultMaxExports = 4
	// maxStoredExports is the maximum number of exports of a site that have not expired. A further
	// export is refused with 429.
	maxStoredExports = 100
	// exportRetry is the Retry-After of a refused export.
	exportRetry = 30 * time.Second
)

// exportJob is a stored export: a record of the type store.JobType of the site itself. So both
// engines store it, any replica continues it, and it is deleted with the site. No API lists records
// of this type. The job has no content of the exported records. Times are milliseconds since 1970.
type exportJob struct {
	Caller  string   `json:"caller"`
	Request string   `json:"request"`
	Types   []string `json:"types"`
	// Level is empty for an export of the whole site. Otherwise it is Patient or Group. Group is
	// the id of the exported Group.
	Level string `json:"level,omitempty"`
	Group string `json:"group,omitempty"`
	// Since excludes versions written at or before it, unless it is 0.
	Since    int64    `json:"since,omitempty"`
	Elements string   `json:"elements,omitempty"`
	Filters  []string `json:"filters,omitempty"`
	// Time is the transaction time. The export has the versions that were current at that time.
	Time    int64 `json:"time"`
	Expires int64 `json:"expires"`

	// Ready is true when all files are planned. Until then, the next file has records of Types[Next]
	// from After on.
	Ready bool           `json:"ready,omitempty"`
	Next  int            `json:"next,omitempty"`
	After store.Position `json:"after,omitempty"`
	Files []plannedFile  `json:"files,omitempty"`
}

// plannedFile is a part of the records of a type, in the order of creation.
type plannedFile struct {
	Type string `json:"t"`
	// After is the position at which the file starts.
	After store.Position `json:"a,omitempty"`
	// LastID is the id of the record that was the last one when the file was planned, and
	// LastCreated is its time of creation. Later records are in the next file, which begins with
	// NextID.
	LastID      string `json:"l"`
	LastCreated int64  `json:"c"`
	NextID      string `json:"n,omitempty"`
}

// exportSlot returns the line that the n-th incomplete export of a site claims.
func exportSlot(n int) string { return "export " + strconv.Itoa(n) }

// jobContext returns the context of reads and writes of jobs. Jobs are not records of the site's users,
// so the audit entry of the request does not name them.
func (r *request) jobContext() context.Context { return audit.Without(r.Context()) }

// startExport stores a job with the claim of a free slot. Errors: *limits.ExceededError if there is
// none, and those of the store.
func (r *request) startExport(id string, job *exportJob) error {
	refused := &limits.ExceededError{Policy: "exports", RetryAfter: exportRetry}
	for n := range settings.Int(r.site.Limits.ConcurrentExports, defaultMaxExports) {
		claim := store.Claim{Line: exportSlot(n), Expires: time.UnixMilli(job.Expires).UTC()}
		err := r.storeExport(store.Key{Type: store.JobType, ID: id}, job, store.Precondition{Absent: true}, []store.Claim{claim})
		if claimed := new(store.ClaimError); !errors.As(err, &claimed) {
			return err
		}
	}
	return refused
}

// storeExport writes a job with its claims.
func (r *request) storeExport(key store.Key, job *exportJob, condition store.Precondition, claims []store.Claim) error {
	text, err := json.Marshal(job)
	if err != nil {
		return err
	}
	_, err = r.site.Store.Write(r.jobContext(), []store.Op{{
		Kind: store.Put, Key: key, Method: store.MethodPut, Body: store.Body{JSON: text}, If: condition, Claims: claims,
	}})
	return err
}

// exportJob returns the job in the path. A job of another caller, or one that has expired, does not
// exist. Errors: store.ErrNotFound, *access.ForbiddenError if the caller may no longer list a type of
// the job, *operationUnknownError for an entry of a Bundle, those of finding the caller's rights and
// of the store.
func (r *request) exportJob(now time.Time) (store.Record, *exportJob, error) {
	if r.inBundle {
		return store.Record{}, nil, &operationUnknownError{name: "$export", inBundle: true}
	}
	if err := r.requireAnyRight(); err != nil {
		return store.Record{}, nil, err
	}
	id := web.PathParameter(r.Request, "job")
	if !r4.ValidID(id) {
		return store.Record{}, nil, store.ErrNotFound
	}
	rec, err := r.site.Store.Get(r.jobContext(), store.Key{Type: store.JobType, ID: id})
	if store.IsAbsent(err) {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.Record{}, nil, err
	}
	job, err := decodeExport(rec)
	if err == nil && (job.Caller != r.caller.Name || job.Expires <= now.UnixMilli()) {
		err = store.ErrNotFound
	}
	if err == nil { // the rights may have been withdrawn
		_, err = r.listableTypes(job.Types)
	}
	return rec, job, err
}

func decodeExport(rec store.Record) (*exportJob, error) {
	job := &exportJob{}
	if err := json.Unmarshal(rec.Body.JSON, job); err != nil {
		return nil, fmt.Errorf("decode the export %s: %w", rec.Key.ID, err)
	}
	return job, nil
}

// removeExpiredExports removes the jobs of the site that have expired or cannot be decoded, with their
// histories. Errors: *exportsKeptError if maxStoredExports remain, and those of the store.
func (r *request) removeExpiredExports(now time.Time) error {
	page, err := r.site.Store.Search(r.jobContext(), store.Query{
		Types: []string{store.JobType}, Access: store.Access{store.JobType: store.All{}}, Count: maxStoredExports, Total: store.TotalNone,
	})
	if err != nil {
		return err
	}
	remaining := 0
	for _, rec := range page.Records {
		job, err := decodeExport(rec)
		if err == nil && job.Expires > now.UnixMilli() {
			remaining++
			continue
		}
		if _, err := r.site.Store.Write(r.jobContext(), []store.Op{{Kind: store.Purge, Key: rec.Key}}); err != nil {
			return err
		}
	}
	if remaining >= maxStoredExports {
		return &exportsKeptError{&limits.ExceededError{Policy: "exports", RetryAfter: exportRetry}}
	}
	return nil
}

// exportsKeptError is the error of an export at a site that keeps maxStoredExports already.
type exportsKeptError struct{ exceeded *limits.ExceededError }

func (e *exportsKeptError) Error() string {
	return fmt.Sprintf("this site keeps %d exports, the maximum; delete one of yours with DELETE $export/{job}, or wait until some expire", maxStoredExports)
}

func (e *exportsKeptError) Unwrap() error { return e.exceeded }

// progress returns the value of X-Progress. Bulk Data Access 2.0: at most 100 characters.
func (j *exportJob) progress() string {
	return fmt.Sprintf("%d of %d types, %d files", j.Next, len(j.Types), len(j.Files))
}

// exportManifest is the response to the status request of a complete export. Bulk Data Access 2.0,
// "Response - Output Manifest".
type exportManifest struct {
	TransactionTime     string       `json:"transactionTime"`
	Request             string       `json:"request"`
	RequiresAccessToken bool         `json:"requiresAccessToken"`
	Output              []exportLink `json:"output"`
	Error               []exportLink `json:"error"`
}

type exportLink struct {
	Type string `json:"type"`
	URL  string `json:"url"`
}

// manifest returns the manifest of a complete job. address is the URL of the job.
func (j *exportJob) manifest(address string) ([]byte, error) {
	m := exportManifest{
		TransactionTime: string(r4.AppendInstant(nil, time.UnixMilli(j.Time).UTC())), Request: j.Request, RequiresAccessToken: true,
		Output: []exportLink{}, Error: []exportLink{},
	}
	for i, file := range j.Files {
		m.Output = append(m.Output, exportLink{Type: file.Type, URL: address + "/" + strconv.Itoa(i+1)})
	}
	return json.Marshal(m)
}
