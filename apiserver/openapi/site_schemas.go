package openapi

import (
	"maps"

	"github.com/paddock-health/paddock/apiserver/ahds/schema"
)

// addSite adds the schemas of the Site itself.
func (c components) addSite() {
	c.Schemas["SiteStatus"] = object(schema.JSON{"siteId": text, "conditions": arrayOf(object(schema.JSON{
		"type": text, "status": schema.JSON{"type": "string", "enum": []string{"True", "False", "Unknown"}}, "reason": text, "message": text, "changedAt": instant,
	}))})
	c.Schemas["SiteUsage"] = object(schema.JSON{
		"siteId": text,
		"storage": described("What the whole site stores. It is absent while the storage is not open.", object(schema.JSON{
			"records": number, "maxRecords": described("The maximum number of records. Absent if there is no limit.", number),
			"bytes": number, "maxBytes": described("The maximum number of bytes. Absent if there is no limit.", number),
			"countedAt": described("The time at which records and bytes were counted. In Postgres, large numbers are counted about once a minute, or less often.", instant),
		}, "maxRecords", "maxBytes")),
		"requests": described("Requests to the API server that responds. Requests to other API servers are not counted.", object(schema.JSON{
			"server": described("The name of the API server.", text), "since": described("When the API server began to count.", instant),
			"stepSeconds": number, "boundsMs": described("The upper limits of the classes of durations, in milliseconds. One more class, the last, has no limit.", arrayOf(number)),
			"samples": described("The counts of each step of time, the oldest first. Steps without requests are absent.", arrayOf(object(schema.JSON{
				"at": instant, "requests": number, "clientErrors": number, "serverErrors": number, "durations": described("The number of requests in each class of durations, in the order of boundsMs.", arrayOf(number)),
			}))),
		})),
		"deliveries": described("Deliveries to all webhooks of the site. It is absent while the storage is not open.", object(schema.JSON{
			"from": described("The time of acceptance from which the numbers are complete. The numbers cover less than an hour if there were more deliveries than are counted or kept.", instant), "stepSeconds": number,
			"samples": described("The deliveries of events that were accepted in each step of time, the oldest first. Steps without events are absent.", arrayOf(object(schema.JSON{
				"at": instant, "pending": number, "delivered": number, "failed": number,
			}))),
		})),
	}, "storage", "deliveries", "requests")
	c.Schemas["Rights"] = object(schema.JSON{"siteId": text, "rights": described("Resources to which the caller has no right are absent.",
		arrayOf(object(schema.JSON{"group": text, "resource": text, "verbs": arrayOf(text)})))})
}

// described returns a schema with a description.
func described(description string, of schema.JSON) schema.JSON {
	all := maps.Clone(of)
	all["description"] = description
	return all
}
