package fhir

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/fhir/search"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/web"
)

const (
	// exportFileSize is the maximum number of records in a file. The records are planned as one page
	// of the engine, which limits their size too, because a file is rendered in memory.
	exportFileSize = 1000
	// planningTime is how long one request for the status plans files. If some remain to be planned,
	// the response is 202.
	planningTime = 2 * time.Second
	// maxVersionsBack is how many versions of a record are read to find the one at the transaction
	// time. If that one is older than all of them, the file has the newest version.
	maxVersionsBack = 50
)

// plannedExport has the queries of an export by type.
type plannedExport struct {
	queries map[string]store.Query
	// projections has the projection of each type.
	projections map[string]projection
}

// exportPlan returns the queries of a job. They are restricted to what the caller may see now.
// Errors: search.Errors, and those of finding the caller's rights.
func (h *handler) exportPlan(r *request, job *exportJob) (plannedExport, error) {
	plan := plannedExport{queries: map[string]store.Query{}, projections: map[string]projection{}}
	elements := search.Query{}
	if job.Elements != "" {
		var err error
		values := url.Values{"_elements": {job.Elements}, "_type": {strings.Join(job.Types, ",")}}
		if elements, err = search.Parse(values, search.Options{Now: h.Now()}); err != nil {
			return plan, err
		}
	}
	for _, typeName := range job.Types {
		query, err := h.exportQuery(r, job, typeName)
		if err != nil {
			return plan, err
		}
		plan.queries[typeName] = query
		plan.projections[typeName] = projectionOf(elements, typeName)
	}
	return plan, nil
}

// exportQuery returns the query of the records of a type.
func (h *handler) exportQuery(r *request, job *exportJob, typeName string) (store.Query, error) {
	conditions, reached := store.All{}, []string{}
	if at := job.levelCondition(typeName); at != nil {
		conditions, reached = append(conditions, at), append(reached, "Patient", "Group")
	}
	var either store.Any
	for _, filter := range job.Filters {
		of, query, _ := strings.Cut(filter, "?")
		if of != typeName {
			continue
		}
		parsed, err := parseTypeFilter(query, search.Options{Type: typeName, Now: h.Now(), Zone: r.site.Zone, Bases: r.bases()})
		if err != nil {
			return store.Query{}, err
		}
		either, reached = append(either, parsed.Where), append(reached, parsed.ReachedTypes...)
	}
	switch len(either) {
	case 0:
	case 1:
		conditions = append(conditions, either[0])
	default:
		conditions = append(conditions, either)
	}
	if job.Since != 0 {
		conditions = append(conditions, store.UpdatedIn{From: time.UnixMilli(job.Since + 1).UTC()})
	}
	reached = slices.DeleteFunc(reached, func(name string) bool { return name == typeName })
	filter, err := r.accessFilter([]string{typeName}, reached)
	if err != nil {
		return store.Query{}, err
	}
	query := store.Query{
		Types: []string{typeName}, Access: filter, Bases: r.bases(), Count: exportFileSize, Total: store.TotalNone,
		Sort: []store.Sort{{Field: store.SortCreated}},
	}
	switch len(conditions) {
	case 0:
	case 1:
		query.Where = conditions[0]
	default:
		query.Where = conditions
	}
	return query, nil
}

// parseTypeFilter parses the query of a _typeFilter. It accepts no result parameters. Errors:
// search.Errors.
func parseTypeFilter(query string, options search.Options) (search.Query, error) {
	filter := r4.Quote(options.Type + "?" + query)
	values, err := web.ParseQuery(query)
	if err != nil {
		return search.Query{}, search.Errors{{Parameter: "_typeFilter", Problem: filter + " has an invalid query string: " + err.Error()}}
	}
	parsed, err := search.ParseCriteria(values, options)
	return parsed, criteriaError("_typeFilter", filter, err)
}

// levelCondition returns the condition that records of a type meet at the level of the export, or nil
// if all records do. In an export of patients, a record of another type must refer to a Patient by a
// parameter of the compartment. In an export of a Group, this Patient must be a member of the Group.
func (j *exportJob) levelCondition(typeName string) store.Condition {
	var patient store.Condition = store.All{}
	switch {
	case j.Level == "":
		return nil
	case j.Group != "" && typeName == "Group":
		return store.IDIn{strings.ToLower(j.Group)}
	case j.Group != "":
		patient = store.ReferredBy{Type: "Group", Param: "member", Where: store.IDIn{strings.ToLower(j.Group)}}
	}
	if typeName == "Patient" {
		if j.Group == "" {
			return nil
		}
		return patient
	}
	of, _ := r4.CompartmentOf("Patient")
	member, _ := of.Member(typeName)
	var either store.Any
	for _, param := range member.Params {
		either = append(either, store.Chain{Param: param, Type: "Patient", Where: patient})
	}
	if len(either) == 1 {
		return either[0]
	}
	return either
}

// advanceExport plans files until all are planned or planningTime is over, extends the lifetime of the
// job and stores it. If another request has stored the job in the meantime, rec and job become what
// that request stored.
func (h *handler) advanceExport(r *request, rec *store.Record, job *exportJob) error {
	plan, err := h.exportPlan(r, job)
	if err != nil {
		return err
	}
	ctx := audit.Without(r.Context()) // no record of these pages is in the response
	consistent := true                // later searches see what the first one has waited for
	for began := time.Now(); job.Next < len(job.Types) && time.Since(began) < planningTime; {
		typeName := job.Types[job.Next]
		query := plan.queries[typeName]
		query.After, query.Consistent = job.After, consistent
		consistent = false
		page, err := r.site.Store.Search(ctx, query)
		if err != nil {
			return err
		}
		job.addPage(typeName, page)
	}
	job.Ready = job.Next == len(job.Types)
	lifetime, claims := exportIdle, []store.Claim(nil)
	if job.Ready {
		lifetime, claims = exportLifetime, []store.Claim{} // releases the slot
	} else {
		for _, claim := range rec.Claims {
			claim.Expires = h.Now().Add(lifetime).UTC().Truncate(time.Millisecond)
			claims = append(claims, claim)
		}
	}
	job.Expires = h.Now().Add(lifetime).UnixMilli()
	err = r.storeExport(rec.Key, job, store.UnchangedSince(*rec), claims)
	if !store.IsConflict(err) {
		return err
	}
	var latest *exportJob
	*rec, latest, err = r.exportJob(h.Now())
	if err == nil {
		*job = *latest
	}
	return err
}

// addPage adds the file with the records of a page, and moves on to the next page or the next type. A
// page whose records were all created after the transaction time makes no file.
func (j *exportJob) addPage(typeName string, page store.Page) {
	if len(page.Records) > 0 {
		first, last := page.Records[0], page.Records[len(page.Records)-1]
		if n := len(j.Files); n > 0 && j.Files[n-1].Type == typeName {
			j.Files[n-1].NextID = first.Key.ID
		}
		if first.Created.UnixMilli() <= j.Time {
			j.Files = append(j.Files, plannedFile{Type: typeName, After: j.After, LastID: last.Key.ID, LastCreated: last.Created.UnixMilli()})
		}
		if last.Created.UnixMilli() > j.Time {
			page.Next = nil // the following records were created after the transaction time
		}
	}
	if j.After = page.Next; page.Next == nil {
		j.Next++
	}
}
