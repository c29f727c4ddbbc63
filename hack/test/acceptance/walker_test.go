package acceptance

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// The full proof: PADDOCK_WALK_RECORDS=8000 PADDOCK_WALKS=50.
var (
	walkRecords = setting("PADDOCK_WALK_RECORDS", 300)
	walks       = setting("PADDOCK_WALKS", 4)
)

func setting(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

var _ = Describe("A walk through all pages", Ordered, func() {
	var groups, editor string
	BeforeAll(func(ctx SpecContext) {
		apply(ctx, siteManifest, "clinic-walks", "walks", "walks", "Delete")
		kubectl(ctx, "patch", "site", "walks", "-n", "clinic-walks", "--type=merge",
			"-p", `{"spec":{"storage":{"cluster":{"maxRecords":20000,"maxSize":"1Gi"}}}}`)
		waitReady(ctx, "clinic-walks", "walks")
		editor = editorOf(ctx, "clinic-walks", "walks")
		groups = paddock.URLs[0] + "/site/walks/fhir/group"
		each(8, walkRecords, func(n int) {
			Eventually(func() int { // until the raised limit has arrived
				r := request{method: "PUT", url: fmt.Sprintf("%s/steady-%d", groups, n), body: herd("steady", n), token: editor}
				return send(r).status
			}).Should(BeElementOf(http.StatusCreated, http.StatusOK))
		})
	}, NodeTimeout(5*time.Minute))

	It("finds each record that lives throughout exactly once, while eight writers write", func(ctx SpecContext) {
		writing, stop := context.WithCancel(ctx)
		var writers sync.WaitGroup
		for w := range 8 {
			writers.Go(func() {
				defer GinkgoRecover()
				write(writing, fmt.Sprintf("%s/passing-%d", groups, w), editor, w)
			})
		}
		defer writers.Wait()
		defer stop()
		for walk := range walks {
			query := []string{"?_count=100", "?_count=97&_sort=_id", "?_count=100&_sort=-_id", "?type=animal&_count=83"}[walk%4]
			seen := walkAll(groups+query, editor)
			for n := range walkRecords {
				id := fmt.Sprintf("steady-%d", n)
				Expect(seen[id]).To(Equal(1), "%s in walk %d by %s", id, walk, query)
			}
		}
	}, NodeTimeout(time.Hour))
})

func herd(name string, n int) string {
	return fmt.Sprintf(`{"resourceType":"Group","type":"animal","actual":true,"name":"%s","quantity":%d}`, name, n)
}

// write creates, updates and deletes records of its own, and updates none that walks look for.
func write(ctx context.Context, prefix, token string, seed int) {
	random := rand.New(rand.NewPCG(uint64(seed), 0))
	for n := 0; ctx.Err() == nil; n++ {
		r := request{method: "PUT", url: fmt.Sprintf("%s-%d", prefix, random.IntN(40)), body: herd("passing", n), token: token}
		if random.IntN(3) == 0 {
			r.method, r.body = "DELETE", ""
		}
		Expect(send(r).status).To(BeElementOf(http.StatusOK, http.StatusCreated))
	}
}

// walkAll follows the next links and counts the ids.
func walkAll(url, token string) map[string]int {
	GinkgoHelper()
	seen := map[string]int{}
	for url != "" {
		answer := send(request{method: "GET", url: url, token: token})
		Expect(answer.status).To(Equal(http.StatusOK), string(answer.body))
		var bundle struct {
			Link  []struct{ Relation, URL string }
			Entry []struct{ FullURL string }
		}
		Expect(json.Unmarshal(answer.body, &bundle)).To(Succeed())
		for _, entry := range bundle.Entry {
			seen[path.Base(entry.FullURL)]++
		}
		url = ""
		for _, link := range bundle.Link {
			if link.Relation == "next" {
				url = strings.Replace(link.URL, paddock.PublicURL(), paddock.URLs[0], 1)
			}
		}
	}
	return seen
}

// each runs n tasks, some at once.
func each(atOnce, n int, task func(n int)) {
	tasks := make(chan int)
	var group sync.WaitGroup
	for range atOnce {
		group.Go(func() {
			defer GinkgoRecover()
			for n := range tasks {
				task(n)
			}
		})
	}
	for i := range n {
		tasks <- i
	}
	close(tasks)
	group.Wait()
}
