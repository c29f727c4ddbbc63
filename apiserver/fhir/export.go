package fhir

import (
	"errors"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/fhir/search"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/web"
)

// The paths of exports below the base.
const (
	exportPath     = "/$export"
	exportJobPath  = exportPath + "/{job}"
	exportFilePath = exportJobPath + "/{file}"
)

// exportParameters are the parameters of a kick-off request.
var exportParameters = []string{"_type", "_since", "_elements", "_typeFilter", "_outputFormat"}

// outputFormats are the values of _outputFormat. All mean NDJSON.
var outputFormats = []string{ndjson, "application/ndjson", "ndjson"}

// export serves GET …/$export, …/Patient/$export and …/Group/{id}/$export: it stores a job and
// responds with its address. Bulk Data Access 2.0, "Bulk Data Kick-off Request".
func (h *handler) export(w http.ResponseWriter, r *request) error {
	if r.inBundle {
		return &operationUnknownError{name: "$export", inBundle: true}
	}
	if !parsePreferences(r.Header).async {
		return &invalidError{code: codeInvalidHeader, diagnostics: "an export is asynchronous; send the header Prefer: respond-async"}
	}
	if err := r.requireAnyRight(); err != nil {
		return err
	}
	job, err := r.newExportJob(h.Now())
	if err != nil {
		return err
	}
	r.recordParameters(nil)
	if _, err := h.exportPlan(r, job); err != nil {
		return err
	}
	if job.Group != "" {
		if _, err := r.site.Store.Get(r.Context(), store.Key{Type: "Group", ID: job.Group}); err != nil {
			return err
		}
	}
	watermark, err := r.site.Store.Watermark(r.Context())
	if err != nil {
		return err
	}
	job.Time = watermark.UnixMilli() - 1
	if err := r.removeExpiredExports(h.Now()); err != nil {
		return err
	}
	id, err := uuid.NewRandom()
	if err != nil {
		return err
	}
	if err := r.startExport(id.String(), job); err != nil {
		return err
	}
	w.Header().Set("Content-Location", r.exportURL(id.String()))
	return r.respondOutcome(w, http.StatusAccepted, information("export_accepted", "the export has started; GET the address in Content-Location until its status is 200"))
}

// canExport reports whether the type in the path of r has an export: all patients, or one group. It is
// true for other paths.
func canExport(r *http.Request) bool {
	if last := path.Base(r.Pattern); last != "$export" && last != "%24export" || !strings.Contains(r.Pattern, "{type}") {
		return true
	}
	kind, _ := r4.TypeOf(r.PathValue("type"))
	id := r.PathValue("id")
	return kind.Name == "Patient" && id == "" || kind.Name == "Group" && id != ""
}

func (r *request) exportURL(id string) string { return r.pagesURL() + exportPath + "/" + id }

// newExportJob returns the job of a kick-off request. Errors: search.Errors, and those of
// exportTypes.
func (r *request) newExportJob(now time.Time) (*exportJob, error) {
	query := search.WithoutPresentation(r.query)
	if handling := parsePreferences(r.Header).handling; handling == handlingLenient {
		for name := range query {
			if !slices.Contains(exportParameters, name) {
				delete(query, name)
			}
		}
	}
	filters := query["_typeFilter"]
	delete(query, "_typeFilter")                          // may be repeated
	for _, name := range []string{"_type", "_elements"} { // likewise, with the meaning of one list
		if values := query[name]; len(values) > 1 {
			query[name] = []string{strings.Join(values, ",")}
		}
	}
	if err := rejectUnknownParameters(query, exportParameters...); err != nil {
		return nil, err
	}
	if format := query.Get("_outputFormat"); format != "" && !slices.Contains(outputFormats, strings.ReplaceAll(format, " ", "+")) {
		return nil, search.Errors{{Parameter: "_outputFormat", Problem: r4.Quote(format) + " is not supported; give " + ndjson}}
	}
	job := &exportJob{
		Caller: r.caller.Name, Request: r.pagesURL(), Level: r.kind.Name, Group: r.id,
		Elements: query.Get("_elements"), Expires: now.Add(exportIdle).UnixMilli(),
	}
	for _, segment := range []string{r.segment, r.id} {
		if segment != "" {
			job.Request += "/" + segment
		}
	}
	job.Request += exportPath
	if r.URL.RawQuery != "" {
		job.Request += "?" + r.URL.RawQuery
	}
	if since := query.Get("_since"); since != "" {
		parsed, err := search.ParseHistory(url.Values{"_since": {since}}, search.Options{Now: now, Zone: r.site.Zone})
		if err != nil {
			return nil, err
		}
		if !parsed.Since.IsZero() {
			job.Since = parsed.Since.UnixMilli()
		}
	}
	var err error
	if job.Types, err = r.exportTypes(query.Get("_type")); err != nil {
		return nil, err
	}
	return job, job.addFilters(filters)
}

// exportTypes returns the types to export: those in _type or, without _type, all types of the level
// of the export (exportJob.Level) that the caller may list. Errors: search.Errors, those of finding
// the caller's rights, and *access.ForbiddenError if the caller may not list a type in _type or,
// without _type, may list no type.
func (r *request) exportTypes(given string) ([]string, error) {
	available := typeNames()
	if r.kind.Name != "" {
		available = patientLevelTypes()
	}
	if given == "" {
		listed, err := r.listableTypes(available)
		if len(listed) > 0 {
			err = nil
		}
		return listed, err
	}
	var types []string
	for item := range strings.SplitSeq(given, ",") {
		if !slices.Contains(available, item) {
			return nil, search.Errors{{Parameter: "_type", Problem: r4.Quote(item) + " cannot be exported here; give one of " + strings.Join(available, ", ")}}
		}
		if !slices.Contains(types, item) {
			types = append(types, item)
		}
	}
	slices.Sort(types)
	_, err := r.listableTypes(types)
	return types, err
}

// patientLevelTypes returns the types with records of patients: Patient and the members of its
// compartment, including Device.
func patientLevelTypes() []string {
	of, _ := r4.CompartmentOf("Patient")
	return slices.DeleteFunc(typeNames(), func(name string) bool {
		_, member := of.Member(name)
		return !member && name != "Patient"
	})
}

// nextTypeFilter matches the comma before a filter in a list of filters. Other commas are in values.
var nextTypeFilter = regexp.MustCompile(`,([A-Z][A-Za-z]+\?)`)

// addFilters adds the values of _typeFilter. A value has queries such as Patient?active=true, separated
// by commas. A record must match one of the queries of its type, if there are any. Errors:
// search.Errors.
func (j *exportJob) addFilters(values []string) error {
	for _, value := range values {
		for item := range strings.SplitSeq(nextTypeFilter.ReplaceAllString(value, "\n$1"), "\n") {
			typeName, _, found := strings.Cut(item, "?")
			if !found || !slices.Contains(j.Types, typeName) {
				return search.Errors{{Parameter: "_typeFilter", Problem: r4.Quote(item) + " is not a query of an exported type; give one such as Patient?active=true"}}
			}
			j.Filters = append(j.Filters, item)
		}
	}
	return nil
}

// exportStatus serves GET …/$export/{job}. While the export is being planned, each GET plans some more
// files, and a HEAD none. Bulk Data Access 2.0, "Bulk Data Status Request".
func (h *handler) exportStatus(w http.ResponseWriter, r *request) error {
	rec, job, err := r.exportJob(h.Now())
	if err != nil {
		return err
	}
	if !job.Ready && r.Method != http.MethodHead {
		if err := h.advanceExport(r, &rec, job); err != nil {
			return err
		}
	}
	if !job.Ready {
		w.Header().Set("X-Progress", job.progress())
		w.Header().Set("Retry-After", "1")
		return r.respondEmpty(w, http.StatusAccepted)
	}
	manifest, err := job.manifest(r.exportURL(rec.Key.ID))
	if err != nil {
		return err
	}
	w.Header().Set("Expires", time.UnixMilli(job.Expires).UTC().Format(http.TimeFormat))
	web.Respond(w, r.Request, http.StatusOK, "application/json", manifest)
	return nil
}

// cancelExport serves DELETE …/$export/{job}. Bulk Data Access 2.0, "Bulk Data Delete Request".
func (h *handler) cancelExport(w http.ResponseWriter, r *request) error {
	rec, _, err := r.exportJob(h.Now())
	if err != nil {
		return err
	}
	if _, err := r.site.Store.Write(r.jobContext(), []store.Op{{Kind: store.Purge, Key: rec.Key}}); err != nil {
		return err
	}
	return r.respondOutcome(w, http.StatusAccepted, information("export_deleted", "the export is deleted"))
}

// requireAnyRight returns an error if the caller has no right at a Site that is hidden from callers
// without a right.
func (r *request) requireAnyRight() error {
	var forbidden *access.ForbiddenError
	if err := r.authorizeList(r4.Types[0]); err != nil && !errors.As(err, &forbidden) {
		return err
	}
	return nil
}
