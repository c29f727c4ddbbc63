package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The records that searches are measured on: 10,000 in all.
const (
	practitioners = 300
	patients      = 9700
)

var (
	families = []string{"Okafor", "Smith", "Nguyen", "Müller", "Garcia", "Kim", "O'Neill", "Haddad", "Rossi", "Novak", "Sato", "Silva", "Larsen", "Dubois", "Kowalski", "Abara"}
	genders  = []string{"male", "female", "other", "unknown"}
)

// recallTag is on one Patient in a thousand.
const recallTag = "https://clinic.example.org/tags|recall"

// record returns the n-th record of a set. The first records of a set are practitioners, and the rest
// are patients.
func record(n, practitioners int) (typeName, id string, text []byte) {
	if n < practitioners {
		id := fmt.Sprintf("vet-%d", n)
		return "Practitioner", id, fmt.Appendf(nil, `{"resourceType":"Practitioner","id":%q,"active":true,"name":[{"family":"%s-%d","given":["Vet"]}]}`, id, families[n%len(families)], n)
	}
	id = fmt.Sprintf("p-%d", n)
	patient := string(body(n))
	for old, value := range map[string]string{
		`"resourceType":"Patient",`: fmt.Sprintf(`"resourceType":"Patient","id":%q,"generalPractitioner":[{"reference":"Practitioner/vet-%d"}],`, id, n%practitioners),
		`"family":"Okafor"`:         fmt.Sprintf(`"family":"%s-%d"`, families[n*7%len(families)], n%97),
		`"gender":"male"`:           fmt.Sprintf(`"gender":"%s"`, genders[n%len(genders)]),
		`2019-05-03`:                fmt.Sprintf(`%d-%02d-%02d`, 2005+n%20, 1+n%12, 1+n%28),
	} {
		patient = strings.Replace(patient, old, value, 1)
	}
	if n%1000 == 500 {
		system, code, _ := strings.Cut(recallTag, "|")
		patient = strings.Replace(patient, "{", fmt.Sprintf(`{"meta":{"tag":[{"system":%q,"code":%q}]},`, system, code), 1)
	}
	return "Patient", id, []byte(patient)
}

// put stores the n-th record of the set.
func (s *site) put(ctx context.Context, n int) error {
	typeName, id, text := record(n, practitioners)
	return s.do(ctx, http.MethodPut, "/"+typeName+"/"+id, text, http.StatusCreated)
}

// inTheMiddle has the numbers of two records. The searches by time ask for what was stored between
// them.
var inTheMiddle = [2]int{(practitioners + patients) / 2, (practitioners+patients)/2 + patients/60}

// populate stores all records, and returns the times at which the two records of inTheMiddle were sent.
func (s *site) populate(ctx context.Context, clients int) (stored [2]time.Time, err error) {
	numbers := make(chan int)
	failed := make(chan error, clients)
	var group sync.WaitGroup
	for range clients {
		group.Go(func() {
			for n := range numbers {
				if err := s.put(ctx, n); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	for n := range practitioners + patients {
		for i, middle := range inTheMiddle {
			if n == middle {
				stored[i] = time.Now()
			}
		}
		select {
		case numbers <- n:
		case err := <-failed:
			close(numbers)
			return stored, err
		}
		if n%500 == 0 {
			fmt.Fprintf(os.Stderr, "\r%d of %d records", n, practitioners+patients)
		}
	}
	close(numbers)
	group.Wait()
	fmt.Fprintln(os.Stderr)
	select {
	case err := <-failed:
		return stored, err
	default:
		return stored, nil
	}
}

// deepPage is the number of the page that is measured in addition to the first.
const deepPage = 400

// pageAddress follows the next links to a page of a query.
func (s *site) pageAddress(ctx context.Context, path string, page int) (string, error) {
	for range page - 1 {
		text, err := s.send(ctx, http.MethodGet, path, nil, http.StatusOK)
		if err != nil {
			return "", err
		}
		var bundle struct {
			Link []struct{ Relation, URL string }
		}
		if err := json.Unmarshal(text, &bundle); err != nil {
			return "", err
		}
		next := ""
		for _, link := range bundle.Link {
			if link.Relation == "next" {
				next = link.URL
			}
		}
		_, query, found := strings.Cut(next, "?")
		if !found {
			return "", fmt.Errorf("%s has no next page", path)
		}
		path = "/patient?" + query
	}
	return path, nil
}

var memoryMetric = regexp.MustCompile(`(?m)^process_resident_memory_bytes (\S+)$`)

// residentMemory reads the resident memory of a process, in bytes, from its metrics.
func residentMemory(ctx context.Context, metrics string) (float64, error) {
	text, err := fetch(ctx, metrics)
	if err != nil {
		return 0, err
	}
	found := memoryMetric.FindSubmatch(text)
	if found == nil {
		return 0, fmt.Errorf("%s has no metric process_resident_memory_bytes", metrics)
	}
	return strconv.ParseFloat(string(found[1]), 64)
}

func fetch(ctx context.Context, address string) ([]byte, error) {
	return fetchWith(ctx, http.DefaultClient, address)
}

func fetchWith(ctx context.Context, client *http.Client, address string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return io.ReadAll(response.Body)
}

// benchSearch compares searches with net/http that answers the same bytes.
func benchSearch(ctx context.Context, o options, paddock installation) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	site := paddock.site
	before, err := residentMemory(ctx, paddock.metrics)
	if err != nil {
		return err
	}
	stored, err := site.populate(ctx, o.clients)
	if err != nil {
		return err
	}
	after, err := residentMemory(ctx, paddock.metrics)
	if err != nil {
		return err
	}
	fmt.Printf("%d records: the API server's memory grew from %.0f to %.0f MiB, %.1f KiB a record\n\n",
		practitioners+patients, before/(1<<20), after/(1<<20), (after-before)/1024/(practitioners+patients))
	deep, err := site.pageAddress(ctx, "/patient?_count=20", deepPage)
	if err != nil {
		return err
	}
	searches := []struct {
		name, path string
		goal       float64
	}{
		{"one record by id", "/patient?_id=p-5000", 0.5},
		{"one record by identifier", "/patient?identifier=" + url.QueryEscape("https://clinic.example.org/patients|P-0005000"), 0.5},
		{"family prefix, page of 20", "/patient?family=okaf", 0},
		{"birthdate and gender, page of 20", "/patient?birthdate=ge2019-01-01&birthdate=lt2021&gender=male", 0},
		{"month and gender", "/patient?" + aMonth, 0},
		{"month by two ends and gender", "/patient?" + twoEnds, 0},
		{"month and gender, sorted by birthdate", "/patient?_sort=birthdate&" + aMonth, 0},
		{"month by two ends and gender, sorted by birthdate", "/patient?_sort=birthdate&" + twoEnds, 0},
		{"updated between two times", "/patient?" + updatedIn(stored[0], stored[1]), 0},
		{"updated between two times, sorted by that", "/patient?_sort=_lastUpdated&" + updatedIn(stored[0], stored[1]), 0},
		{"chained by the practitioner's family", "/patient?general-practitioner:Practitioner.family=smith-17", 0},
		{"_has a patient of a family", "/practitioner?_has:Patient:general-practitioner:family=okafor-1", 0},
		{"page of 20 with their practitioners", "/patient?_include=Patient:general-practitioner", 0},
		{"a practitioner's patients by compartment", "/practitioner/vet-17/patient", 0},
		{"a practitioner's compartment, all types", "/practitioner/vet-17/*", 0},
		{"sorted by family, page of 20", "/patient?_sort=family", 0},
		{"first page of 20", "/patient?_count=20&_total=none", 0},
		{"400th page of 20", deep, 0},
	}
	dir, err := os.MkdirTemp("", "paddock-bench-static")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for i, search := range searches {
		answer, err := site.send(ctx, http.MethodGet, search.path, nil, http.StatusOK)
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "%s: %d bytes\n", search.name, len(answer))
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), answer, 0o600); err != nil {
			return err
		}
	}
	address, _, err := startStatic(ctx, dir)
	if err != nil {
		return err
	}
	static := newSite(address, "none")
	var workloads []workload
	var ratios []ratio
	for i, search := range searches {
		if !strings.Contains(search.name, o.only) {
			continue
		}
		workloads = append(workloads,
			workload{search.name, func(ctx context.Context, _ int) error {
				return site.do(ctx, http.MethodGet, search.path, nil, http.StatusOK)
			}},
			workload{"static: " + search.name, func(ctx context.Context, _ int) error {
				return static.do(ctx, http.MethodGet, fmt.Sprintf("/%d", i), nil, http.StatusOK)
			}},
		)
		ratios = append(ratios, ratio{search.name + " per static answer", search.name, "static: " + search.name, search.goal})
	}
	ratios = append(append(ratios, ratio{"400th page per first page", "400th page of 20", "first page of 20", 0.67}), rangesPerMonth()...)
	results := measure(ctx, o, workloads)
	return report(os.Stdout, o, results, measured(ratios, results))
}
