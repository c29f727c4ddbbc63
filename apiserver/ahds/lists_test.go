package ahds_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A list", func() {
	onBoth("of slots: its parameters", func(newSite func(context.Context, ...wrapper) site) {
		var s site
		var ids []string
		BeforeEach(func(ctx SpecContext) {
			s = newSite(ctx)
			ids = nil
			for i, change := range []fields{
				{"notes": "Straße, first floor"},
				{"isActive": false, "serviceType": fields{"code": "vax", "system": "urn:s:1"}},
				{"isBooked": true, "notes": "FIRST aid"},
				{"resourceId": room, "serviceType": fields{"code": "vax"}},
				{"locationId": room, "startAt": "2031-03-01T17:45:00+05:45", "endAt": "2031-03-01T18:45:00+05:45"},
			} {
				ids = append(ids, s.do("POST", slotPath, slotBody(float64(8+i), change)).created(slotID))
			}
		})

		DescribeTable("choose",
			func(query string, want ...int) {
				chosen := []string{}
				for _, at := range want {
					chosen = append(chosen, ids[at])
				}
				Expect(s.do("GET", slotPath+"?"+query, "").ids(slotID)).To(Equal(chosen))
			},
			Entry("isActive", "isActive=true", 0, 2, 3, 4), Entry("isActive", "isActive=false", 1),
			Entry("isBooked", "isBooked=true", 2), Entry("isBooked", "isBooked=false", 0, 1, 3, 4),
			Entry("locationId", "locationId="+location, 0, 1, 2, 3), Entry("locationId", "locationId="+strings.ToUpper(room), 4),
			Entry("resourceId", "resourceId="+room, 3), Entry("resourceId", "resourceId="+location),
			Entry("notes: a part, whatever the case", "notes=first", 0, 2), Entry("notes", "notes=STRASSE", 0), Entry("notes", "notes=%25"), Entry("notes: nothing is part of all", "notes=", 0, 1, 2, 3, 4),
			Entry("serviceType: a code", "serviceType=vax", 1, 3), Entry("serviceType: of a system", "serviceType=urn:s:1|vax", 1), Entry("serviceType: of none", "serviceType=|vax", 3), Entry("serviceType: in its case", "serviceType=VAX"),
			Entry("startAtFrom: from that time on", "startAtFrom=2031-03-01T10:00:00Z", 2, 3, 4), Entry("startAtFrom: exactly", "startAtFrom=2031-03-01T10:00:00.000001Z", 3, 4),
			Entry("startAtTo: before that time", "startAtTo=2031-03-01T10:00:00Z", 0, 1), Entry("startAtTo: exactly", "startAtTo=2031-03-01T10:00:00.000001Z", 0, 1, 2),
			Entry("endAtFrom", "endAtFrom=2031-03-01T12:00:00Z", 3, 4), Entry("endAtTo", "endAtTo=2031-03-01T10:00:00Z", 0),
			Entry("overlaps: at the ends is not within", "overlapsFrom=2031-03-01T10:00:00Z&overlapsTo=2031-03-01T12:00:00Z", 2, 3),
			Entry("overlapsFrom", "overlapsFrom=2031-03-01T12:30:00Z", 4), Entry("overlapsTo", "overlapsTo=2031-03-01T08:00:00Z"),
			Entry("an offset whose + came as a space", "startAtFrom=2031-03-01T17:45:00+05:45", 4), Entry("an offset whose + is escaped", "startAtFrom=2031-03-01T17:45:00%2B05:45", 4),
			Entry("several", "isActive=true&isBooked=false&resourceId="+vet+"&startAtTo=2031-03-01T09:00:00Z", 0),
			Entry("the defaults, said so", "page=0&pageSize=10&sortBy=startAt&sortOrder=asc", 0, 1, 2, 3, 4),
			Entry("pages", "page=1&pageSize=2", 2, 3), Entry("the last page", "page=2&pageSize=2", 4), Entry("past the last page", "page=3&pageSize=2"),
			Entry("far past it", "page=9007199254740991&pageSize=100"), Entry("descending", "sortOrder=desc&pageSize=3", 4, 3, 2),
			Entry("sorted", "sortBy=createdAt&sortOrder=desc&pageSize=1", 4), Entry("sorted", "sortBy=resourceId&pageSize=1&sortOrder=desc", 3), Entry("sorted", "sortBy=locationId&pageSize=1&sortOrder=desc", 4),
			Entry("sorted", "sortBy=endAt&page=4&pageSize=1", 4), Entry("sorted", "sortBy=updatedAt&page=4&pageSize=1", 4),
		)

		It("knows what changed since", func() {
			// What was made in the millisecond of the change has changed since, too.
			Eventually(func() []string {
				changed := s.do("PATCH", slotPath+"/"+ids[1], `{"notes":"`+uuid.NewString()+`"}`).ok().text("updatedAt")
				return s.do("GET", slotPath+"?updatedFrom="+changed, "").ids(slotID)
			}).Should(Equal([]string{ids[1]}))
			Expect(s.do("GET", slotPath+"?updatedFrom=2999-01-01T00:00:00Z", "").ids(slotID)).To(BeEmpty())
		})

		It("counts", func() {
			a := s.do("GET", slotPath+"?pageSize=2&page=7", "").ok()
			Expect(a.json()).To(Equal(document{"data": []any{}, "meta": map[string]any{"page": 7.0, "pageSize": 2.0, "total": 5.0, "totalPages": 3.0}}))
		})

		DescribeTable("is refused",
			func(query string, want ...string) {
				a := s.do("GET", slotPath+"?"+query, "")
				Expect(a.status).To(Equal(http.StatusBadRequest), a.body)
				Expect(a.errs()).To(ConsistOf(want))
			},
			Entry("page below 0", "page=-1", "parameter page out_of_range"), Entry("pageSize below 1", "pageSize=0", "parameter pageSize out_of_range"),
			Entry("pageSize above 100", "pageSize=101", "parameter pageSize out_of_range"), Entry("sortBy of no list", "sortBy=notes", "parameter sortBy invalid_value"),
			Entry("sortOrder", "sortOrder=up", "parameter sortOrder invalid_value"), Entry("booleans", "isActive=yes&isBooked=0", "parameter isActive invalid_value", "parameter isBooked invalid_value"),
			Entry("ids", "locationId=main&resourceId=", "parameter locationId invalid_value", "parameter resourceId invalid_value"),
			Entry("codes", "serviceType=urn:s:1|", "parameter serviceType invalid_value"),
			Entry("times", "startAtFrom=2031-03-01&endAtTo=2031-03-01T00:00:00&overlapsTo=now&updatedFrom=2031-06-30T23:59:60Z&startAtTo=2031-03-01%2009:00:00Z&endAtFrom=&overlapsFrom=10000-01-01T00:00:00Z",
				"parameter startAtFrom invalid_value", "parameter endAtTo invalid_value", "parameter overlapsTo invalid_value", "parameter updatedFrom invalid_value",
				"parameter startAtTo invalid_value", "parameter endAtFrom invalid_value", "parameter overlapsFrom invalid_value"),
			Entry("unknown", "limit=5&isbooked=true", "parameter limit unknown_parameter", "parameter isbooked unknown_parameter"),
			Entry("repeated", "page=1&page=2&notes=a&notes=a", "parameter page repeated_parameter", "parameter notes repeated_parameter"),
		)
	})

	onBoth("of event groups: its parameters", func(newSite func(context.Context, ...wrapper) site) {
		It("choose and sort", func(ctx SpecContext) {
			s := newSite(ctx)
			var ids []string
			for _, change := range []fields{
				{"name": "beta", "description": "Every SPRING", "category": "campaign"},
				{"name": "Alpha", "status": "inactive", "organizationId": "Acme.1"},
				{"name": "gamma", "status": "archived", "locationId": location, "category": "workflow"},
			} {
				ids = append(ids, s.do("POST", groupPath, groupBody(change)).created(groupID))
			}
			for query, want := range map[string][]int{
				"":                                   {0, 1, 2},
				"name=ALP":                           {1},
				"name=":                              {0, 1, 2},
				"status=active":                      {0},
				"status=active,archived":             {0, 2},
				"status=inactive,inactive":           {1},
				"category=campaign":                  {0},
				"category=Campaign":                  {},
				"description=spring":                 {0},
				"organizationId=acme.1":              {1},
				"locationId=" + location:             {2},
				"sortBy=name":                        {1, 0, 2},
				"sortBy=name&sortOrder=desc":         {2, 0, 1},
				"sortBy=status":                      {0, 2, 1},
				"sortBy=category":                    {0, 2, 1}, // without one comes last
				"sortBy=category&sortOrder=desc":     {2, 0, 1},
				"sortBy=createdAt&sortOrder=desc":    {2, 1, 0},
				"sortBy=updatedAt&pageSize=1&page=1": {1},
			} {
				chosen := []string{}
				for _, at := range want {
					chosen = append(chosen, ids[at])
				}
				Expect(s.do("GET", groupPath+"?"+query, "").ids(groupID)).To(Equal(chosen), query)
			}
			for query, want := range map[string]string{
				"status=active,": "status invalid_value", "status=Active": "status invalid_value", "category=": "category invalid_value",
				"sortBy=description": "sortBy invalid_value", "isActive=true": "isActive unknown_parameter", "organizationId=": "organizationId invalid_value",
			} {
				Expect(s.do("GET", groupPath+"?"+query, "").errs()).To(Equal([]string{"parameter " + want}), query)
			}
		})
	})

	onBoth("of random slots", func(newSite func(context.Context, ...wrapper) site) {
		It("is that of a naive reading, page by page", func(ctx SpecContext) {
			s := newSite(ctx)
			d := dice{rand.New(rand.NewPCG(5, 6))}
			model := d.fill(s)
			for range 150 {
				query := d.query()
				want := model.list(query)
				size := 1 + d.IntN(12)
				for page := 0; page <= (len(want)+size-1)/size; page++ {
					query.Set("page", fmt.Sprint(page))
					query.Set("pageSize", fmt.Sprint(size))
					a := s.do("GET", slotPath+"?"+query.Encode(), "")
					part := want[min(page*size, len(want)):min((page+1)*size, len(want))]
					Expect(a.ids(slotID)).To(Equal(append([]string{}, part...)), query.Encode())
					Expect(a.json()["meta"]).To(HaveKeyWithValue("total", BeEquivalentTo(len(want))), query.Encode())
				}
			}
		})
	})
})

// dice make random slots and queries. They are seeded: a failure repeats.
type dice struct{ *rand.Rand }

func pick[T any](d dice, of ...T) T { return of[d.IntN(len(of))] }

// at is a random time, in a random zone.
func (d dice) at() string {
	zone := pick(d, "Z", "+05:45", "-08:00", "+00:00")
	at := day.Add(time.Duration(d.IntN(48)) * 30 * time.Minute)
	if zone == "Z" {
		return at.Format(time.RFC3339)
	}
	offset, err := time.Parse("-07:00", zone)
	Expect(err).NotTo(HaveOccurred())
	return at.In(offset.Location()).Format("2006-01-02T15:04:05-07:00")
}

// known is a slot as a client reads it.
type known struct {
	ID          string `json:"availabilitySlotId"`
	StartAt     time.Time
	EndAt       time.Time
	IsActive    bool
	IsBooked    bool
	LocationID  string
	ResourceID  string
	ServiceType *struct{ Code, System string }
	Notes       string
	HeldUntil   time.Time
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

type model []known

// fill makes random slots, changes some and deletes some.
func (d dice) fill(s site) model {
	GinkgoHelper()
	var all model
	for i := range 180 {
		change := fields{
			"startAt": d.at(), "isActive": d.IntN(4) > 0, "locationId": pick(d, location, vet), "resourceId": pick(d, vet, room, strings.ToUpper(room)),
			"notes": pick(d, "", "Rex", "straße", "REX und Mia", "100%", "a_b", "\u00e9 e\u0301"), "serviceType": pick[any](d, nil, fields{"code": "vax"}, fields{"code": "vax", "system": "urn:s:1"}, fields{"code": "Vax"}),
		}
		start, err := time.Parse(time.RFC3339, change["startAt"].(string))
		Expect(err).NotTo(HaveOccurred())
		change["endAt"] = start.Add(time.Duration(1+d.IntN(8)) * 15 * time.Minute).Format(time.RFC3339)
		id := s.do("POST", slotPath, slotBody(0, change)).created(slotID)
		switch d.IntN(6) {
		case 0:
			s.do("POST", slotPath+"/"+id+"/book", "") // where it can be
		case 1:
			s.do("PATCH", slotPath+"/"+id, fmt.Sprintf(`{"notes":"changed %d"}`, i)).ok()
		case 2:
			Expect(s.do("DELETE", slotPath+"/"+id, "").status).To(Equal(http.StatusNoContent))
			continue
		}
		var k known
		s.do("GET", slotPath+"/"+id, "").ok().decode(&k)
		all = append(all, k)
	}
	return all
}

// query makes a random one.
func (d dice) query() url.Values {
	q := url.Values{}
	maybe := func(name, value string) {
		if d.IntN(5) == 0 {
			q.Set(name, value)
		}
	}
	maybe("isActive", pick(d, "true", "false"))
	maybe("isBooked", pick(d, "true", "false"))
	maybe("locationId", pick(d, location, vet))
	maybe("resourceId", pick(d, vet, room))
	maybe("notes", pick(d, "rex", "STRASSE", "%", "_", "é", "", "changed 1", "nothing"))
	maybe("serviceType", pick(d, "vax", "|vax", "urn:s:1|vax", "Vax"))
	for _, name := range []string{"startAtFrom", "startAtTo", "endAtFrom", "endAtTo", "overlapsFrom", "overlapsTo"} {
		if d.IntN(8) == 0 {
			q.Set(name, d.at())
		}
	}
	if d.IntN(4) > 0 {
		q.Set("sortBy", pick(d, "startAt", "endAt", "createdAt", "updatedAt", "resourceId", "locationId"))
	}
	maybe("sortOrder", pick(d, "asc", "desc"))
	return q
}

// list is what the query means, read naively.
func (m model) list(q url.Values) []string {
	var chosen model
	for _, k := range m {
		if k.meets(q) {
			chosen = append(chosen, k)
		}
	}
	slices.SortFunc(chosen, func(a, b known) int {
		order := cmp.Or(a.compare(b, q.Get("sortBy")), cmp.Compare(a.ID, b.ID))
		if q.Get("sortOrder") == "desc" {
			return -order
		}
		return order
	})
	ids := []string{}
	for _, k := range chosen {
		ids = append(ids, k.ID)
	}
	return ids
}

func (k known) compare(other known, by string) int {
	switch by {
	case "endAt":
		return k.EndAt.Compare(other.EndAt)
	case "createdAt":
		return k.CreatedAt.Compare(other.CreatedAt)
	case "updatedAt":
		return k.UpdatedAt.Compare(other.UpdatedAt)
	case "resourceId":
		return cmp.Compare(strings.ToLower(k.ResourceID), strings.ToLower(other.ResourceID))
	case "locationId":
		return cmp.Compare(k.LocationID, other.LocationID)
	default:
		return k.StartAt.Compare(other.StartAt)
	}
}

// plain is how texts of the test are compared: the only letters that fold are these.
func plain(text string) string {
	return strings.NewReplacer("ß", "ss", "e\u0301", "é").Replace(strings.ToLower(text))
}

func (k known) meets(q url.Values) bool {
	at := func(name string) time.Time {
		at, err := time.Parse(time.RFC3339, q.Get(name))
		Expect(err).NotTo(HaveOccurred())
		return at
	}
	service := ""
	if k.ServiceType != nil {
		service = k.ServiceType.System + "|" + k.ServiceType.Code
	}
	for name := range q {
		value := q.Get(name)
		met := map[string]func() bool{
			"isActive": func() bool { return fmt.Sprint(k.IsActive) == value }, "isBooked": func() bool { return fmt.Sprint(k.IsBooked) == value },
			"locationId": func() bool { return k.LocationID == value }, "resourceId": func() bool { return strings.EqualFold(k.ResourceID, value) },
			"notes": func() bool { return strings.Contains(plain(k.Notes), plain(value)) },
			"serviceType": func() bool {
				return service == value || !strings.Contains(value, "|") && strings.HasSuffix(service, "|"+value)
			},
			"startAtFrom":  func() bool { return !k.StartAt.Before(at(name)) },
			"startAtTo":    func() bool { return k.StartAt.Before(at(name)) },
			"endAtFrom":    func() bool { return !k.EndAt.Before(at(name)) },
			"endAtTo":      func() bool { return k.EndAt.Before(at(name)) },
			"overlapsFrom": func() bool { return k.EndAt.After(at(name)) },
			"overlapsTo":   func() bool { return k.StartAt.Before(at(name)) },
		}[name]
		if met != nil && !met() {
			return false
		}
	}
	return true
}
