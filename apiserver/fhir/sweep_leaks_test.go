package fhir_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/store"
)

// leaky is a gate in which some methods are replaced by worse ones.
type leaky struct {
	store.Restricted
	get        func(context.Context, store.Key) (store.Record, error)
	getVersion func(context.Context, store.Key, int64) (store.Record, error)
	search     func(context.Context, store.Query) (store.Page, error)
	history    func(context.Context, store.HistoryQuery) (store.Page, error)
	write      func(context.Context, []store.Op) ([]store.Result, error)
	hides      func(context.Context, []store.Key) ([]store.Key, error)
	digest     func([]string) (string, error)
}

func (l *leaky) Get(ctx context.Context, key store.Key) (store.Record, error) {
	if l.get != nil {
		return l.get(ctx, key)
	}
	return l.Restricted.Get(ctx, key)
}

func (l *leaky) GetVersion(ctx context.Context, key store.Key, version int64) (store.Record, error) {
	if l.getVersion != nil {
		return l.getVersion(ctx, key, version)
	}
	return l.Restricted.GetVersion(ctx, key, version)
}

func (l *leaky) Search(ctx context.Context, query store.Query) (store.Page, error) {
	if l.search != nil {
		return l.search(ctx, query)
	}
	return l.Restricted.Search(ctx, query)
}

func (l *leaky) History(ctx context.Context, query store.HistoryQuery) (store.Page, error) {
	if l.history != nil {
		return l.history(ctx, query)
	}
	return l.Restricted.History(ctx, query)
}

func (l *leaky) Write(ctx context.Context, ops []store.Op) ([]store.Result, error) {
	if l.write != nil {
		return l.write(ctx, ops)
	}
	return l.Restricted.Write(ctx, ops)
}

func (l *leaky) Hidden(ctx context.Context, keys []store.Key) ([]store.Key, error) {
	if l.hides != nil {
		return l.hides(ctx, keys)
	}
	return l.Restricted.Hidden(ctx, keys)
}

func (l *leaky) Digest(types []string) (string, error) {
	if l.digest != nil {
		return l.digest(types)
	}
	return l.Restricted.Digest(types)
}

// unrestricted is the access of a caller who sees all records of some types.
func unrestricted(access store.Access) store.Access {
	all := store.Access{}
	for recordType := range access {
		all[recordType] = store.All{}
	}
	return all
}

// planted is a gate with a leak, and the requests that must find it.
type planted struct {
	hole leak
	asks func() []question
}

// readingLeaks are gates that show too much and write nothing.
var readingLeaks = map[string]planted{
	"reads": {func(gate store.Restricted, raw store.Store) store.Restricted {
		return &leaky{Restricted: gate, get: raw.Get}
	}, func() []question { return readQuestions("Patient") }},
	"reads that tell a deletion": {func(gate store.Restricted, raw store.Store) store.Restricted {
		return &leaky{Restricted: gate, get: func(ctx context.Context, key store.Key) (store.Record, error) {
			if _, err := raw.Get(ctx, key); errors.As(err, new(*store.DeletedError)) {
				return store.Record{}, err
			}
			return gate.Get(ctx, key)
		}}
	}, func() []question { return readQuestions("Patient") }},
	"versions without the newest": {func(gate store.Restricted, raw store.Store) store.Restricted {
		return &leaky{Restricted: gate, getVersion: func(ctx context.Context, key store.Key, version int64) (store.Record, error) {
			if record, err := raw.GetVersion(ctx, key, version); err == nil && key.ID == "raised" && version == 1 {
				return record, nil
			}
			return gate.GetVersion(ctx, key, version)
		}}
	}, func() []question { return readQuestions("Patient") }},
	"histories": {func(gate store.Restricted, raw store.Store) store.Restricted {
		return &leaky{Restricted: gate, history: raw.History}
	}, func() []question { return readQuestions("Patient") }},
	"searches": {func(gate store.Restricted, raw store.Store) store.Restricted {
		return &leaky{Restricted: gate, search: raw.Search}
	}, func() []question { return joinQuestions("Patient") }},
	"totals": {func(gate store.Restricted, raw store.Store) store.Restricted {
		return &leaky{Restricted: gate, search: func(ctx context.Context, query store.Query) (store.Page, error) {
			page, err := gate.Search(ctx, query)
			if all, failed := raw.Search(ctx, query); failed == nil && page.Total != store.UnknownTotal {
				page.Total = all.Total
			}
			return page, err
		}}
	}, func() []question { return joinQuestions("Patient") }},
	"included types": {func(gate store.Restricted, raw store.Store) store.Restricted {
		return &leaky{Restricted: gate, search: func(ctx context.Context, query store.Query) (store.Page, error) {
			page, err := gate.Search(ctx, query)
			if all, failed := raw.Search(ctx, query); failed == nil && len(query.Includes) > 0 {
				page.Included = all.Included
			}
			return page, err
		}}
	}, func() []question { return joinQuestions("Device") }},
	"conditions on linked records": {func(gate store.Restricted, raw store.Store) store.Restricted {
		return &leaky{Restricted: gate, search: func(ctx context.Context, query store.Query) (store.Page, error) {
			restricted, err := gate.Search(ctx, query)
			if len(query.Types) == 1 && query.Types[0] != "Patient" && len(query.Includes) == 0 {
				reached := unrestricted(query.Access)
				query.Access = reached
				page, failed := raw.Search(ctx, query)
				if failed == nil && page.Total == restricted.Total+1 {
					return page, nil
				}
			}
			return restricted, err
		}}
	}, func() []question { return joinQuestions("DeviceMetric") }},
}

// doorLeaks are the same holes, and the requests through one kind of door, each of which must find them
// by itself.
var doorLeaks = map[string]planted{
	"$everything":  {leakySearch, func() []question { return everythingQuestions("Patient") }},
	"compartments": {leakySearch, func() []question { return compartmentQuestions("Patient") }},
	"conditional operations": {leakySearch, func() []question {
		return only(writesOf("Patient", "hidden-r", true), func(q question) bool { return strings.HasPrefix(q.path, "/Patient?") })
	}},
	"searches in bundles": {leakySearch, func() []question {
		return only(writesOf("Patient", "hidden-r", true), func(q question) bool { return strings.Contains(q.body, "_tag=secret") })
	}},
	"reads in bundles": {leakyGet, func() []question {
		return only(writesOf("Patient", "hidden-r", true), func(q question) bool { return strings.Contains(q.body, `"method":"GET","url":"Patient/hidden-r"`) })
	}},
	"ETags": {leakyGet, func() []question {
		return only(readQuestions("Patient"), func(q question) bool {
			return q.header.Get("If-None-Match") != "" && !strings.Contains(q.path, "_history")
		})
	}},
	"counts": {leakySearch, func() []question {
		return only(siteQuestions(), func(q question) bool { return strings.Contains(q.path, "_summary=count") })
	}},
	"the history of the site": {func(gate store.Restricted, raw store.Store) store.Restricted {
		return &leaky{Restricted: gate, history: raw.History}
	}, func() []question {
		return only(siteQuestions(), func(q question) bool { return strings.HasPrefix(q.path, "/_history") })
	}},
	"orders": {func(gate store.Restricted, raw store.Store) store.Restricted {
		return &leaky{Restricted: gate, search: func(ctx context.Context, query store.Query) (store.Page, error) {
			page, err := gate.Search(ctx, query)
			if all, failed := raw.Search(ctx, query); failed == nil && len(query.Sort) > 0 && query.Sort[0].Field != store.SortCreated {
				page.Next = all.Next // there is more, of which all is hidden
			}
			return page, err
		}}
	}, func() []question {
		return only(siteQuestions(), func(q question) bool { return strings.Contains(q.path, "_sort=") })
	}},
}

func leakySearch(gate store.Restricted, raw store.Store) store.Restricted {
	return &leaky{Restricted: gate, search: raw.Search}
}

func leakyGet(gate store.Restricted, raw store.Store) store.Restricted {
	return &leaky{Restricted: gate, get: raw.Get}
}

// only returns the questions that a function accepts. There must be some.
func only(questions []question, accepts func(question) bool) []question {
	GinkgoHelper()
	questions = slices.DeleteFunc(questions, func(q question) bool { return !accepts(q) })
	Expect(questions).NotTo(BeEmpty())
	return questions
}

// writingLeaks are gates that write records that they must not, or reveal too much about a write.
var writingLeaks = map[string]planted{
	"writes": {func(gate store.Restricted, raw store.Store) store.Restricted {
		return &leaky{Restricted: gate, write: raw.Write}
	}, func() []question { return writesOf("Patient", "hidden-r", true) }},
	"deletions": {func(gate store.Restricted, raw store.Store) store.Restricted {
		return &leaky{Restricted: gate, write: func(ctx context.Context, ops []store.Op) ([]store.Result, error) {
			if ops[0].Kind == store.Delete {
				return raw.Write(ctx, ops)
			}
			return gate.Write(ctx, ops)
		}}
	}, func() []question { return writesOf("Patient", "hidden-r", true) }},
	"ids that are taken, told without a reason": {func(gate store.Restricted, raw store.Store) store.Restricted {
		return &leaky{Restricted: gate, write: func(ctx context.Context, ops []store.Op) ([]store.Result, error) {
			results, err := gate.Write(ctx, ops)
			if taken := new(store.IDTakenError); errors.As(err, &taken) {
				return nil, &store.PreconditionError{Key: taken.Key}
			}
			return results, err
		}}
	}, func() []question { return writesOf("Patient", "hidden-r", true) }},
	"holders of claims": {func(gate store.Restricted, raw store.Store) store.Restricted {
		return &leaky{Restricted: gate, write: func(ctx context.Context, ops []store.Op) ([]store.Result, error) {
			if len(ops) == 1 && len(ops[0].Claims) > 0 {
				return raw.Write(ctx, ops)
			}
			return gate.Write(ctx, ops)
		}}
	}, func() []question {
		return slices.DeleteFunc(referenceWrites(), func(q question) bool { return q.header.Get("If-None-Exist") == "" })
	}},
	"references to hidden records": {func(gate store.Restricted, raw store.Store) store.Restricted {
		return &leaky{
			Restricted: gate,
			hides:      func(context.Context, []store.Key) ([]store.Key, error) { return nil, nil },
			write:      func(ctx context.Context, ops []store.Op) ([]store.Result, error) { return raw.Write(ctx, ops) },
		}
	}, referenceWrites},
}

var _ = Describe("A gate that leaks", func() {
	find := func(ctx context.Context, both *twins, asks []question) {
		GinkgoHelper()
		both.differences = nil
		for _, q := range asks {
			if len(both.differences) > 0 {
				break
			}
			both.compareWrite(ctx, q, "Patient")
		}
		Expect(both.differences).NotTo(BeEmpty())
		GinkgoWriter.Println(both.differences[0])
	}

	Describe("when it reads", Ordered, ContinueOnFailure, func() {
		var both *twins
		var hole leak // of the spec that runs
		BeforeAll(func(ctx context.Context) {
			both = openTwins(ctx, newSite, []string{"Device", "DeviceMetric", "Group", "Organization", "Patient"}, openPolicy, func(gate store.Restricted, raw store.Store) store.Restricted {
				if hole == nil {
					return gate
				}
				return hole(gate, raw)
			})
		})
		for name, each := range readingLeaks {
			It("is found by the sweep: "+name, func(ctx context.Context) {
				hole = each.hole
				find(ctx, both, each.asks())
			})
		}
		for door, each := range doorLeaks {
			It("is found through each kind of door: "+door, func(ctx context.Context) {
				hole = each.hole
				find(ctx, both, each.asks())
			})
		}
		It("is not found where there is no hole", func() {
			hole, both.differences = nil, nil
			for _, q := range joinQuestions("Patient")[:20] {
				both.compare(q)
			}
			Expect(both.differences).To(BeEmpty())
		})
	})

	for name, each := range writingLeaks {
		It("is found by the sweep: "+name, func(ctx context.Context) {
			open, kinds := newSite, []string{"Patient"}
			if name == "references to hidden records" { // which only Postgres enforces
				open, kinds = newPostgresSite, []string{"Device", "Organization", "Patient"}
			}
			both := openTwins(ctx, open, kinds, openPolicy, each.hole)
			both.with.patience = 5 * time.Second // the other site has nothing that leaks
			find(ctx, both, each.asks())
		})
	}

	It("is found by the sweep: page tokens that any view takes", func(ctx context.Context) {
		both := openTwins(ctx, newSite, []string{"Patient"}, openPolicy, func(gate store.Restricted, _ store.Store) store.Restricted {
			return &leaky{Restricted: gate, digest: func([]string) (string, error) { return "", nil }}
		})
		failures := InterceptGomegaFailures(func() { both.tokenQuestions() })
		Expect(failures).NotTo(BeEmpty())
	})
})
