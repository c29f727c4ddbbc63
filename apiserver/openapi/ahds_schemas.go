package openapi

import (
	"maps"
	"slices"

	"github.com/paddock-health/paddock/apiserver/ahds"
	"github.com/paddock-health/paddock/apiserver/ahds/event"
	"github.com/paddock-health/paddock/apiserver/ahds/eventgroup"
	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/ahds/slot"
	"github.com/paddock-health/paddock/apiserver/ahds/webhook"
)

// ahdsKind is a kind of object of the AHDS API with its table of fields.
type ahdsKind struct {
	name, segment, idField string
	fields                 schema.Fields
}

var ahdsKinds = []ahdsKind{
	{"AvailabilitySlot", "availability-slot", slot.IDField, slot.Fields},
	{"EventGroup", "eventgroup", eventgroup.IDField, eventgroup.Fields},
	{"AvailabilitySlotFeed", "availability-slot-feed", slot.FeedIDField, slot.FeedFields},
	{"WebhookEvent", "webhook-event", webhook.EventIDField, webhook.EventFields},
	{"Webhook", "webhook", webhook.IDField, webhook.Fields},
}

// addAHDSSchemas adds the schemas of the AHDS API.
func (c components) addAHDSSchemas() {
	for _, k := range ahdsKinds {
		c.Schemas[k.name] = k.served()
		c.Schemas["New"+k.name] = k.sent(k.fields.Schema(), nil)
		c.Schemas["Whole"+k.name] = k.sent(k.fields.Schema(), k.whole())
		c.Schemas[k.name+"Patch"] = k.patch()
		c.Schemas[k.name+"List"] = listOf(refTo(k.name))
	}
	c.Schemas["Hold"] = slot.HoldFields.Schema()
	c.Schemas["HoldToken"] = slot.TokenFields.Schema()
	held := maps.Clone(c.Schemas["AvailabilitySlot"])
	held["properties"] = with(held["properties"].(schema.JSON), "holdToken", text)
	c.Schemas["HeldSlot"] = held
	c.Schemas["Schedule"] = slot.GenerateFields.Schema()
	c.Schemas["GeneratedSlots"] = object(schema.JSON{
		"data": arrayOf(object(schema.JSON{slot.IDField: uuid, "startAt": instant, "endAt": instant, "created": boolean})),
		"meta": object(schema.JSON{"created": number, "existing": number}),
	})
	c.addBatch()
	c.Schemas["SlotChanges"] = object(schema.JSON{
		"data": arrayOf(object(schema.JSON{slot.IDField: uuid, "updatedAt": instant, "deleted": boolean, "etag": text, "slot": refTo("AvailabilitySlot")}, "etag", "slot")),
		"meta": object(schema.JSON{"next": text, "more": boolean}),
	})
	c.addSite()
	c.addEvents()
	c.addDeliveries()
	c.Schemas["Problem"] = object(schema.JSON{
		"type": schema.JSON{"type": "string", "format": "uri"}, "title": text, "status": number, "detail": text, "instance": text, "code": text,
		"conflictingSlotId": uuid,
		"errors":            arrayOf(object(schema.JSON{"pointer": text, "parameter": text, "header": text, "code": text, "detail": text}, "pointer", "parameter", "header")),
	}, "conflictingSlotId", "errors")
}

func (c components) addBatch() {
	entry := ahds.BatchFields.Schema()
	entry["properties"] = with(entry["properties"].(schema.JSON), slot.IDField, uuid.OrNull())
	c.Schemas["Batch"] = schema.JSON{"type": "array", "minItems": 1, "maxItems": ahds.MaxSlotBatch, "items": entry}
	c.Schemas["BatchResult"] = object(schema.JSON{
		"data": arrayOf(object(schema.JSON{"status": number, "etag": text, "slot": refTo("AvailabilitySlot"), slot.IDField: uuid, "problem": refTo("Problem")}, "etag", "slot", slot.IDField, "problem")),
	})
}

func (c components) addEvents() {
	c.Schemas["Event"] = event.Fields.Schema()
	c.Schemas["Events"] = schema.JSON{"oneOf": []any{
		refTo("Event"), schema.JSON{"type": "array", "minItems": 1, "maxItems": ahds.MaxEvents, "items": refTo("Event")},
	}}
	accepted := object(schema.JSON{"eventId": text})
	c.Schemas["AcceptedEvents"] = schema.JSON{"oneOf": []any{accepted, object(schema.JSON{"data": arrayOf(accepted)})}}
	c.Schemas["EventType"] = object(schema.JSON{"eventType": text, "description": text, "schema": schema.JSON{"type": "object"}, "example": schema.JSON{"type": "object"}})
	c.Schemas["EventTypeList"] = listOf(refTo("EventType"))
}

func (c components) addDeliveries() {
	attempt := object(schema.JSON{"at": instant, "reason": text, "message": text, "latencyMs": number, "status": number, "response": text}, "status", "response")
	c.Schemas["Delivery"] = object(schema.JSON{
		"deliveryId": uuid, "webhookId": uuid, "eventId": text, "eventType": text, "subject": text,
		"status":     schema.JSON{"type": "string", "enum": ahds.DeliveryStatuses},
		"acceptedAt": instant, "nextAttemptAt": instant, "finishedAt": instant, "attempts": arrayOf(attempt),
	}, "subject", "nextAttemptAt", "finishedAt")
	c.Schemas["DeliveryList"] = listOf(refTo("Delivery"))
	c.Schemas["Replay"] = ahds.ReplayFields.Schema()
	c.Schemas["Replayed"] = object(schema.JSON{"count": number, "skipped": number})
	c.Schemas["TestSent"] = object(schema.JSON{"deliveryId": uuid, "eventId": text})
	c.Schemas["Empty"] = schema.JSON{"type": "object", "additionalProperties": false}
}

var (
	uuid    = schema.UUID().Schema
	instant = schema.Instant().Schema
	boolean = schema.Boolean().Schema
	number  = schema.JSON{"type": "integer"}
)

// object returns the schema of an object that has all properties except the optional ones.
func object(properties schema.JSON, optional ...string) schema.JSON {
	left := maps.Clone(properties)
	for _, name := range optional {
		delete(left, name)
	}
	return schema.JSON{"type": "object", "properties": properties, "required": sortedNames(left), "additionalProperties": false}
}

func arrayOf(item schema.JSON) schema.JSON { return schema.JSON{"type": "array", "items": item} }

// with returns a copy of properties with a further one.
func with(properties schema.JSON, name string, value schema.JSON) schema.JSON {
	all := maps.Clone(properties)
	all[name] = value
	return all
}

// listOf returns the schema of a page of a list.
func listOf(item schema.JSON) schema.JSON {
	return object(schema.JSON{
		"data": arrayOf(item),
		"meta": object(schema.JSON{"page": number, "pageSize": number, "total": number, "totalPages": number}),
	})
}

// served returns the schema of an object in responses.
func (k ahdsKind) served() schema.JSON {
	properties := schema.JSON{k.idField: uuid}
	var optional []string
	for _, field := range k.fields {
		value := field.Check.Schema
		if field.Default == "null" {
			value = value.OrNull()
		}
		if field.Served && field.Name != "createdAt" && field.Name != "updatedAt" || field.Optional {
			optional = append(optional, field.Name)
		}
		properties[field.Name] = value
	}
	return object(properties, optional...)
}

// sent adds the id, which requests may have, to of, the schema of an object in requests. If required
// is not nil, only these fields are required. It changes of and returns it.
func (k ahdsKind) sent(of schema.JSON, required []string) schema.JSON {
	of["properties"] = with(of["properties"].(schema.JSON), k.idField, uuid.OrNull())
	if required != nil {
		of["required"] = required
	}
	return of
}

// whole returns the fields that a PUT must have.
func (k ahdsKind) whole() []string {
	required := []string{}
	for _, field := range k.fields {
		if !field.Served && !field.Optional {
			required = append(required, field.Name)
		}
	}
	return required
}

// patch returns the schema of a merge patch. A patch of an object may have some of its members.
func (k ahdsKind) patch() schema.JSON {
	of := k.sent(k.fields.Schema(), []string{})
	properties := of["properties"].(schema.JSON)
	for _, field := range k.fields {
		if field.Check.Schema["type"] == "object" {
			properties[field.Name] = schema.JSON{"type": []string{"object", "null"}}
		}
	}
	return of
}

// sortedNames returns the names of properties, sorted.
func sortedNames(properties schema.JSON) []string { return slices.Sorted(maps.Keys(properties)) }
