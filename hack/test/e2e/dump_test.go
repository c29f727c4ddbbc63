//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// describeDump are the specs of a site whose database is dropped and restored from a pg_dump, as
// docs/guides/backup.md says.
func describeDump() {
	It("is restored from a pg_dump after its database was dropped", func(ctx SpecContext) {
		elm := newClient(ctx, "elm")
		want := func(c *client, status int, method, path, body string, answer any) {
			GinkgoHelper()
			var got int
			var text []byte
			Eventually(ctx, func() (_ int, err error) { // each replica connects to the restored database by itself
				got, text, err = c.send(ctx, method, path, body)
				return got, err
			}).ShouldNot(Equal(http.StatusServiceUnavailable))
			Expect(got).To(Equal(status), "%s %s: %s", method, path, text)
			if answer != nil {
				Expect(json.Unmarshal(text, answer)).To(Succeed(), string(text))
			}
		}
		put := func(id, family string, status int) {
			GinkgoHelper()
			want(elm, status, http.MethodPut, "patient/"+id, fmt.Sprintf(`{"resourceType":"Patient","id":%q,"name":[{"family":%q}]}`, id, family), nil)
		}
		put("dumped", "First", http.StatusCreated)
		put("dumped", "Second", http.StatusOK)
		put("dump-page", "Dumped", http.StatusCreated)
		put("dump-page-2", "Dumped", http.StatusCreated)
		put("dump-gone", "Gone", http.StatusCreated)
		want(elm, http.StatusOK, http.MethodDelete, "patient/dump-gone", "", nil)
		resource, start := uuid.NewString(), time.Now().Add(48*time.Hour).UTC().Truncate(time.Hour)
		booking := fmt.Sprintf(`{"startAt":%q,"endAt":%q,"locationId":%q,"resourceId":%q,"isBooked":true}`,
			start.Format(time.RFC3339), start.Add(time.Hour).Format(time.RFC3339), resource, resource)
		want(elm.ahds(), http.StatusCreated, http.MethodPost, "availability-slot", booking, nil)
		var feed struct{ URL string }
		want(elm.ahds(), http.StatusCreated, http.MethodPost, "availability-slot-feed", fmt.Sprintf(`{"resourceId":%q}`, resource), &feed)
		var page struct {
			Link []struct{ Relation, URL string }
		}
		want(elm, http.StatusOK, http.MethodGet, "patient?family=Dumped&_count=1", "", &page)
		paths := []string{"patient/dumped", "patient/dumped/_history/1", "patient/dumped/_history/2", "patient/dump-gone", feed.URL}
		for _, link := range page.Link {
			if link.Relation == "next" {
				paths = append(paths, link.URL)
			}
		}
		Expect(paths).To(HaveLen(6), "no link to a next page")
		get := func(path string) (text string) {
			GinkgoHelper()
			Eventually(ctx, func(g Gomega) { text = known(ctx, g, elm, path) }).Should(Succeed())
			return text
		}
		before := map[string]string{}
		for _, path := range paths {
			before[path] = get(path)
		}

		const file = "/tmp/elm.dump" // the root of the file system is read-only
		inDatabase(ctx, `pg_dump --format=custom --no-owner --file=`+file+` --username="$POSTGRES_USER" "$POSTGRES_DB"`)
		put("after-dump", "After", http.StatusCreated)
		psql := `psql --quiet --set=ON_ERROR_STOP=1 --username="$POSTGRES_USER" --dbname=postgres --command=`
		inDatabase(ctx, psql+`"DROP DATABASE \"$POSTGRES_DB\" WITH (FORCE)"`)
		status, _, err := elm.send(ctx, http.MethodGet, "patient/dumped", "")
		Expect(err).NotTo(HaveOccurred())
		Expect(status).To(Equal(http.StatusServiceUnavailable))

		restoring := time.Now()
		inDatabase(ctx, `createdb --username="$POSTGRES_USER" restored &&
			pg_restore --no-owner --exit-on-error --username="$POSTGRES_USER" --dbname=restored `+file+` &&
			psql --quiet --set=ON_ERROR_STOP=1 --username="$POSTGRES_USER" --dbname=restored --command=ANALYZE &&
			`+psql+`"ALTER DATABASE restored RENAME TO \"$POSTGRES_DB\"" && rm `+file)
		Eventually(ctx, func() (string, error) { return elm.family(ctx, "dumped") }).Should(Equal("Second"))
		AddReportEntry("pg_dump", fmt.Sprintf("the site serves %s after the restore began", time.Since(restoring).Round(time.Millisecond)), ReportEntryVisibilityAlways)
		for _, path := range paths {
			Expect(get(path)).To(Equal(before[path]), path)
		}
		want(elm.ahds(), http.StatusConflict, http.MethodPost, "availability-slot", booking, nil)
		want(elm, http.StatusNotFound, http.MethodGet, "patient/after-dump", "", nil)
		put("dumped", "Third", http.StatusOK)
		want(elm, http.StatusOK, http.MethodGet, "patient/dumped/_history/3", "", nil)
	}, NodeTimeout(3*time.Minute))
}

// inDatabase runs a command of the shell in the pod of the database of the site elm.
func inDatabase(ctx context.Context, command string) {
	GinkgoHelper()
	kubectl(ctx, "-n", "clinic-elm", "exec", "paddock-postgres-0", "--", "sh", "-c", command)
}

// known returns the response to a GET request of a path or a link, without what differs between two
// responses for the same records: the id, the time and the links of a Bundle, the request of an outcome, and
// the time of a calendar.
func known(ctx context.Context, g Gomega, c *client, path string) string {
	if !strings.HasPrefix(path, "https://") {
		path = c.base + path
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, path, http.NoBody)
	g.Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Accept", "*/*")
	if !strings.Contains(path, "token=") || strings.Contains(path, "_page_token=") { // a calendar's address has its own token
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := c.http.Do(request)
	g.Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	g.Expect(err).NotTo(HaveOccurred())
	var document map[string]any
	if json.Unmarshal(body, &document) == nil {
		if document["resourceType"] == "Bundle" {
			for _, name := range []string{"id", "meta", "link"} {
				delete(document, name)
			}
		}
		body, err = json.Marshal(document)
		g.Expect(err).NotTo(HaveOccurred())
	}
	var lines []string
	for line := range strings.Lines(string(body)) {
		if !strings.HasPrefix(line, "DTSTAMP") {
			lines = append(lines, line)
		}
	}
	g.Expect(response.StatusCode).To(BeElementOf(http.StatusOK, http.StatusGone), string(body))
	return fmt.Sprint(response.StatusCode, " ", strings.Join(lines, ""))
}
