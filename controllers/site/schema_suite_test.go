package site_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

var _ = Describe("The schema of Site", func() {
	DescribeTable("accepts", func(ctx SpecContext, name, spec string) {
		Expect(dryRunCreate(ctx, name, spec)).To(Succeed())
	},
		Entry("no spec", "oak", ""),
		Entry("a siteID of digits", "oak", `{siteID: "1042"}`),
		Entry("the longest siteID", "oak", `{siteID: `+strings.Repeat("a", 63)+`}`),
		Entry("a name that is no siteID, with a siteID", "oak.street", `{siteID: oak}`),
		Entry("limits at their bounds", "oak",
			`{storage: {cluster: {maxRecords: 1, maxVersions: 0, maxObjectSize: 1Mi, maxSize: 1Ki}}, limits: {maxBodySize: 64Mi}}`),
		Entry("retention at its bounds", "oak", `{retention: {tombstones: 1h, versions: 720h, deliveries: 1h0m0s, audit: 24h}}`),
		Entry("retention in other units", "oak", `{retention: {tombstones: 1h30m, versions: +60m, deliveries: 1.5h, audit: 86400s}, audit: {retention: 86400000ms}}`),
		Entry("an empty retention", "oak", `{retention: {}}`),
		Entry("a time zone", "oak", `{timeZone: Australia/Melbourne}`),
		Entry("UTC", "oak", `{timeZone: UTC}`),
		Entry("unknown parameters ignored", "oak", `{fhir: {unknownParameters: Ignore}, limits: {maxIncluded: 10000}}`),
		Entry("Postgres", "oak", `{storage: {type: Postgres, postgres: {external: {secretRef: {name: db}}}}}`),
		Entry("referential integrity on Postgres", "oak",
			`{storage: {type: Postgres, postgres: {external: {secretRef: {name: db, key: dsn}}}}, fhir: {referentialIntegrity: Enforce}}`),
		Entry("referential integrity ignored", "oak", `{fhir: {referentialIntegrity: Ignore}}`),
		Entry("a database of its own", "oak", postgres(`{provisioned: {version: "17", storage: {size: 10Gi}}}`)),
		Entry("a database of its own, with all there is", "oak", postgres(`{provisioned: {engine: CloudNativePG, version: "17.6", instances: 2,
			storage: {size: 1Gi, storageClassName: fast}, resources: {requests: {cpu: 1}, limits: {memory: 1Gi}}, backup: {schedule: "0 0 2 * * *"}}}`)),
		Entry("a host", "oak", `{exposure: {ingress: {host: oak.clinics.example.org}}}`),
		Entry("a host that begins with digits", "oak", `{exposure: {ingress: {host: 1042.example.org}}}`),
		Entry("a route", "oak", `{exposure: {httpRoute: {parentRefs: [{namespace: infra, name: public, sectionName: https}, {namespace: infra, name: other}],
			hostnames: [oak.example.org, oak.example.com]}}}`),
		Entry("no events of changes", "oak", `{events: {sources: []}}`),
		Entry("sources of events", "oak", `{events: {sources: [{type: AvailabilitySlot, created: appointment.created}, {type: Patient, updated: user.updated}]}}`),
		Entry("sizes as plain numbers", "oak", `{storage: {cluster: {maxObjectSize: 1024}}, limits: {maxBodySize: 4096}}`),
	)

	DescribeTable("refuses", func(ctx SpecContext, name, spec, message string) {
		err := dryRunCreate(ctx, name, spec)
		Expect(err).To(MatchError(apierrors.IsInvalid, "an error of status 422"))
		Expect(err).To(MatchError(ContainSubstring(message)))
	},
		Entry("capitals in a siteID", "oak", `{siteID: Oak}`, "spec.siteID"),
		Entry("a dot in a siteID", "oak", `{siteID: oak.street}`, "spec.siteID"),
		Entry("a slash in a siteID", "oak", `{siteID: oak/fhir}`, "spec.siteID"),
		Entry("a leading hyphen", "oak", `{siteID: "-oak"}`, "spec.siteID"),
		Entry("a trailing hyphen", "oak", `{siteID: oak-}`, "spec.siteID"),
		Entry("an empty siteID", "oak", `{siteID: ""}`, "spec.siteID"),
		Entry("a siteID that is too long", "oak", `{siteID: `+strings.Repeat("a", 64)+`}`, "spec.siteID"),
		Entry("a name that is no siteID", "oak.street", `{}`, "metadata.name cannot be the siteID"),
		Entry("a name that is no siteID, and no spec", "oak.street", ``, "metadata.name cannot be the siteID"),
		Entry("a name that is too long for a siteID", strings.Repeat("a", 64), `{}`, "metadata.name cannot be the siteID"),
		Entry("tombstones kept too briefly", "oak", `{retention: {tombstones: 59m}}`, "tombstones must be at least 1h"),
		Entry("versions kept too briefly", "oak", `{retention: {versions: 0s}}`, "versions must be at least 1h"),
		Entry("deliveries kept for a negative time", "oak", `{retention: {deliveries: -2h}}`, "deliveries must be at least 1h"),
		Entry("audit entries kept too briefly", "oak", `{retention: {audit: 23h}}`, "audit must be at least 24h"),
		Entry("a retention in days", "oak", `{retention: {versions: 30d}}`, `spec.retention.versions: Invalid value: "30d": versions must be at least 1h, in hours, minutes or seconds, such as 720h`),
		Entry("a retention that is no duration", "oak", `{retention: {tombstones: abc}}`, `spec.retention.tombstones: Invalid value: "abc": tombstones must be at least 1h, in hours, minutes or seconds, such as 720h`),
		Entry("an empty retention of deliveries", "oak", `{retention: {deliveries: ""}}`, `spec.retention.deliveries: Invalid value: "": deliveries must be at least 1h`),
		Entry("a retention of audit entries in days", "oak", `{retention: {audit: 90d}}`, `spec.retention.audit: Invalid value: "90d": audit must be at least 24h, in hours, minutes or seconds, such as 2160h`),
		Entry("an audit log kept for weeks", "oak", `{audit: {retention: 4w}}`, `spec.audit.retention: Invalid value: "4w": retention must be at least 24h, in hours, minutes or seconds, such as 2160h`),
		Entry("an unknown engine", "oak", `{storage: {type: SQLite}}`, "spec.storage.type"),
		Entry("Postgres without a database", "oak", `{storage: {type: Postgres}}`, "storage.type Postgres needs storage.postgres"),
		Entry("Postgres with no database in particular", "oak", `{storage: {type: Postgres, postgres: {}}}`, "exactly one of"),
		Entry("two databases", "oak", postgres(`{external: {secretRef: {name: db}}, provisioned: {version: "17", storage: {size: 10Gi}}}`), "exactly one of"),
		Entry("a database of no version", "oak", postgres(`{provisioned: {storage: {size: 10Gi}}}`), "provisioned.version"),
		Entry("a version that is too old", "oak", postgres(`{provisioned: {version: "13", storage: {size: 10Gi}}}`), "provisioned.version"),
		Entry("a version that is an image", "oak", postgres(`{provisioned: {version: "17@sha256", storage: {size: 10Gi}}}`), "provisioned.version"),
		Entry("a database without a volume", "oak", postgres(`{provisioned: {version: "17"}}`), "provisioned.storage"),
		Entry("a volume without a size", "oak", postgres(`{provisioned: {version: "17", storage: {storageClassName: fast}}}`), "storage.size"),
		Entry("a volume that is too small", "oak", postgres(`{provisioned: {version: "17", storage: {size: 1Mi}}}`), "at least 1Gi"),
		Entry("too little memory", "oak", postgres(`{provisioned: {version: "17", storage: {size: 1Gi}, resources: {limits: {memory: 1Mi}}}}`), "at least 128Mi"),
		Entry("no CPU", "oak", postgres(`{provisioned: {version: "17", storage: {size: 1Gi}, resources: {limits: {cpu: 0}}}}`), "at least 1m"),
		Entry("an engine that there is not", "oak", postgres(`{provisioned: {engine: Docker, version: "17", storage: {size: 1Gi}}}`), "provisioned.engine"),
		Entry("several instances of a StatefulSet", "oak", postgres(`{provisioned: {version: "17", instances: 3, storage: {size: 1Gi}}}`), "needs engine CloudNativePG"),
		Entry("backups of a StatefulSet", "oak",
			postgres(`{provisioned: {version: "17", storage: {size: 1Gi}, backup: {schedule: "0 0 2 * * *"}}}`), "needs engine CloudNativePG"),
		Entry("no instance", "oak", postgres(`{provisioned: {engine: CloudNativePG, version: "17", instances: 0, storage: {size: 1Gi}}}`), "provisioned.instances"),
		Entry("Postgres without the name of a Secret", "oak", `{storage: {type: Postgres, postgres: {external: {secretRef: {key: uri}}}}}`, "secretRef.name"),
		Entry("a database for etcd-backed storage", "oak", `{storage: {postgres: {external: {secretRef: {name: db}}}}}`, "storage.postgres needs storage.type Postgres"),
		Entry("limits of etcd-backed storage for Postgres", "oak",
			`{storage: {type: Postgres, cluster: {maxRecords: 5}, postgres: {external: {secretRef: {name: db}}}}}`, "storage.cluster needs storage.type Cluster"),
		Entry("referential integrity on etcd-backed storage", "oak", `{fhir: {referentialIntegrity: Enforce}}`, "needs storage.type Postgres"),
		Entry("referential integrity otherwise", "oak", `{fhir: {referentialIntegrity: Perhaps}}`, "spec.fhir.referentialIntegrity"),
		Entry("an unknown deletionPolicy", "oak", `{deletionPolicy: Perhaps}`, "spec.deletionPolicy"),
		Entry("objects that etcd would refuse", "oak", `{storage: {cluster: {maxObjectSize: 2Mi}}}`, "between 1Ki and 1Mi"),
		Entry("objects of no size", "oak", `{storage: {cluster: {maxObjectSize: 0}}}`, "between 1Ki and 1Mi"),
		Entry("a size that is none", "oak", `{storage: {cluster: {maxSize: lots}}}`, "spec.storage.cluster.maxSize"),
		Entry("a negative size", "oak", `{storage: {cluster: {maxSize: "-5Gi"}}}`, "at least 1Ki"),
		Entry("bodies that are too large", "oak", `{limits: {maxBodySize: 65Mi}}`, "between 1Ki and 64Mi"),
		Entry("a time zone that there is not", "oak", `{timeZone: Mars/Olympus}`, "spec.timeZone"),
		Entry("the machine's own time zone", "oak", `{timeZone: Local}`, "IANA time zone database"),
		Entry("an offset as a time zone", "oak", `{timeZone: "+10:00"}`, "IANA time zone database"),
		Entry("unknown parameters otherwise", "oak", `{fhir: {unknownParameters: Maybe}}`, "spec.fhir.unknownParameters"),
		Entry("nothing included", "oak", `{limits: {maxIncluded: 0}}`, "spec.limits.maxIncluded"),
		Entry("no records", "oak", `{storage: {cluster: {maxRecords: 0}}}`, "spec.storage.cluster.maxRecords"),
		Entry("too many versions", "oak", `{storage: {cluster: {maxVersions: 1001}}}`, "spec.storage.cluster.maxVersions"),
		Entry("no origin", "oak", `{cors: {allowOrigins: []}}`, "spec.cors.allowOrigins"),
		Entry("cross-origin requests of nobody", "oak", `{cors: {}}`, "spec.cors.allowOrigins"),
		Entry("every origin and one", "oak", `{cors: {allowOrigins: ["*", "https://app.example.org"]}}`, "remove the other origins"),
		Entry("an origin twice", "oak", `{cors: {allowOrigins: ["https://app.example.org", "https://app.example.org"]}}`, "Duplicate value"),
		Entry("an origin without its scheme", "oak", `{cors: {allowOrigins: [app.example.org]}}`, "spec.cors.allowOrigins[0]"),
		Entry("an origin with a path", "oak", `{cors: {allowOrigins: ["https://app.example.org/"]}}`, "spec.cors.allowOrigins[0]"),
		Entry("an origin in capitals", "oak", `{cors: {allowOrigins: ["https://App.example.org"]}}`, "spec.cors.allowOrigins[0]"),
		Entry("an origin with a wildcard within", "oak", `{cors: {allowOrigins: ["https://app*.example.org"]}}`, "spec.cors.allowOrigins[0]"),
		Entry("the origin of files", "oak", `{cors: {allowOrigins: ["null"]}}`, "spec.cors.allowOrigins[0]"),
		Entry("exposure to nothing", "oak", `{exposure: {}}`, "exactly one of exposure.ingress and exposure.httpRoute"),
		Entry("exposure twice", "oak", `{exposure: {ingress: {host: a.example.org}, httpRoute: {parentRefs: [{namespace: a, name: a}], hostnames: [a.example.org]}}}`,
			"exactly one of exposure.ingress and exposure.httpRoute"),
		Entry("every host", "oak", `{exposure: {ingress: {host: "*.example.org"}}}`, "spec.exposure.ingress.host"),
		Entry("no host", "oak", `{exposure: {ingress: {}}}`, "spec.exposure.ingress.host"),
		Entry("an empty host", "oak", `{exposure: {ingress: {host: ""}}}`, "spec.exposure.ingress.host"),
		Entry("a host without a domain", "oak", `{exposure: {ingress: {host: localhost}}}`, "spec.exposure.ingress.host"),
		Entry("a host with a port", "oak", `{exposure: {ingress: {host: "oak.example.org:443"}}}`, "spec.exposure.ingress.host"),
		Entry("a host with a path", "oak", `{exposure: {ingress: {host: oak.example.org/site/other}}}`, "spec.exposure.ingress.host"),
		Entry("a host in capitals", "oak", `{exposure: {ingress: {host: Oak.example.org}}}`, "spec.exposure.ingress.host"),
		Entry("a host that is an IP address", "oak", `{exposure: {ingress: {host: 192.0.2.1}}}`, "must be a DNS name, not an IP address"),
		Entry("a route without a Gateway", "oak", `{exposure: {httpRoute: {parentRefs: [], hostnames: [a.example.org]}}}`, "spec.exposure.httpRoute.parentRefs"),
		Entry("a route without a host", "oak", `{exposure: {httpRoute: {parentRefs: [{namespace: a, name: a}], hostnames: []}}}`, "spec.exposure.httpRoute.hostnames"),
		Entry("a Gateway without its namespace", "oak", `{exposure: {httpRoute: {parentRefs: [{name: a}], hostnames: [a.example.org]}}}`, "namespace"),
		Entry("a Gateway twice", "oak", `{exposure: {httpRoute: {parentRefs: [{namespace: a, name: a}, {namespace: a, name: a, sectionName: b}], hostnames: [a.example.org]}}}`,
			"Duplicate value"),
		Entry("a source that produces no events", "oak", `{events: {sources: [{type: Patient}]}}`, "set created, updated or both"),
		Entry("a source that there is not", "oak", `{events: {sources: [{type: EventGroup, created: user.created}]}}`, "spec.events.sources[0].type"),
		Entry("a source without a type", "oak", `{events: {sources: [{created: user.created}]}}`, "spec.events.sources[0].type"),
		Entry("a source twice", "oak", `{events: {sources: [{type: Patient, created: user.created}, {type: Patient, updated: user.updated}]}}`, "Duplicate value"),
		Entry("an event that there is not", "oak", `{events: {sources: [{type: Patient, created: user.deleted}]}}`, "spec.events.sources[0].created"),
		Entry("a displayName that is too long", "oak", `{displayName: `+strings.Repeat("a", 201)+`}`, "spec.displayName"),
	)

	DescribeTable("refuses to change", func(ctx SpecContext, from, to, message string) {
		s := siteFrom(newNamespace(ctx), "oak", from)
		Expect(admin.Create(ctx, s)).To(Succeed())
		s.Object["spec"] = specFrom(to)
		err := admin.Update(ctx, s)
		Expect(err).To(MatchError(apierrors.IsInvalid, "an error of status 422"))
		Expect(err).To(MatchError(ContainSubstring(message)))
	},
		Entry("a siteID", `{siteID: schema-a}`, `{siteID: schema-b}`, "siteID is immutable"),
		Entry("a siteID to the default", `{siteID: schema-a}`, `{}`, "spec.siteID: Invalid value: siteID is immutable"),
		Entry("the default siteID", `{}`, `{siteID: schema-a}`, "spec.siteID: Invalid value: siteID is immutable"),
		Entry("the default siteID of a Site without a spec", ``, `{siteID: schema-a}`, "siteID is immutable"),
		Entry("the storage engine", `{siteID: schema-a}`,
			`{siteID: schema-a, storage: {type: Postgres, postgres: {external: {secretRef: {name: db}}}}}`, "spec.storage.type: Invalid value: storage.type is changed by a SiteMove only: kubectl paddock move"),
		Entry("whose database it is", postgres(`{external: {secretRef: {name: db}}}`),
			postgres(`{provisioned: {version: "17", storage: {size: 10Gi}}}`), "spec.storage.postgres: Invalid value: storage.postgres is changed between external, provisioned and pool, or to another region, by a SiteMove only"),
		Entry("the region", postgres(`{pool: {region: east}}`), postgres(`{pool: {region: west}}`), "or to another region, by a SiteMove only"),
		Entry("what runs the database", postgres(`{provisioned: {version: "17", storage: {size: 10Gi}}}`),
			postgres(`{provisioned: {engine: CloudNativePG, version: "17", storage: {size: 10Gi}}}`), "engine is immutable: move the Site to a new database with a SiteMove"),
		Entry("the major version", postgres(`{provisioned: {version: "17.2", storage: {size: 10Gi}}}`),
			postgres(`{provisioned: {version: "18.0", storage: {size: 10Gi}}}`), "major version of Postgres cannot change in place: move the Site to a new database with a SiteMove"),
		Entry("a volume to a smaller one", postgres(`{provisioned: {version: "17", storage: {size: 10Gi}}}`),
			postgres(`{provisioned: {version: "17", storage: {size: 9Gi}}}`), "size may only grow"),
		Entry("the storage class", postgres(`{provisioned: {version: "17", storage: {size: 10Gi, storageClassName: fast}}}`),
			postgres(`{provisioned: {version: "17", storage: {size: 10Gi, storageClassName: slow}}}`), "storageClassName is immutable"),
		Entry("the storage class from the default", postgres(`{provisioned: {version: "17", storage: {size: 10Gi}}}`),
			postgres(`{provisioned: {version: "17", storage: {size: 10Gi, storageClassName: slow}}}`), "storageClassName is immutable"),
		Entry("the siteID by taking the spec away", `{siteID: schema-a}`, ``, "siteID is immutable"),
	)

	It("fills in defaults", func(ctx SpecContext) {
		s := &v1alpha1.Site{ObjectMeta: metav1.ObjectMeta{Namespace: newNamespace(ctx), Name: "oak"}}
		Expect(admin.Create(ctx, s, client.DryRunAll)).To(Succeed())
		Expect(s.Spec.Storage.Type).To(Equal(v1alpha1.StorageCluster))
		Expect(s.Spec.DeletionPolicy).To(Equal(v1alpha1.DeletionRetain))
		Expect(s.EventSources()).To(Equal(v1alpha1.DefaultEventSources()))
	})

	It("keeps an empty list of event sources, which is not the default", func(ctx SpecContext) {
		s := &v1alpha1.Site{ObjectMeta: metav1.ObjectMeta{Namespace: newNamespace(ctx), Name: "oak"}}
		s.Spec.Events.Sources = []v1alpha1.EventSource{}
		Expect(admin.Create(ctx, s)).To(Succeed())
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(s), s)).To(Succeed())
		Expect(s.EventSources()).To(BeEmpty())
	})
})

var _ = Describe("The schema of SiteClaim", func() {
	It("keeps the site key", func(ctx SpecContext) {
		claim := &v1alpha1.SiteClaim{
			ObjectMeta: metav1.ObjectMeta{Name: "schema-of-claim"},
			Spec:       v1alpha1.SiteClaimSpec{SiteRef: v1alpha1.SiteReference{Namespace: "a", Name: "b", UID: "c"}, SiteKey: "key"},
		}
		Expect(admin.Create(ctx, claim)).To(Succeed())
		claim.Spec.SiteKey = "other"
		Expect(admin.Update(ctx, claim)).To(MatchError(ContainSubstring("siteKey is immutable")))
	})
})

var _ = Describe("The schema of SiteClass", func() {
	const cluster = `cloudNativePG: {version: "17", storage: {size: 10Gi, storageClassName: fast}}`
	const template = `template: {capacity: 2, maxDatabases: 1, ` + cluster + `}`
	classFrom := func(name, pool string) *unstructured.Unstructured {
		class := siteFrom("", name, postgres(`{pool: {`+pool+`}}`))
		class.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("SiteClass"))
		return class
	}

	DescribeTable("accepts a pool", func(ctx SpecContext, name, pool string) {
		Expect(admin.Create(ctx, classFrom(name, pool), client.DryRunAll)).To(Succeed())
	},
		Entry("with databases", "pool", `databases: [{name: auto-1, secretRef: {name: a}, capacity: 0}]`),
		Entry("with a template", strings.Repeat("a", 40), template),
		Entry("with both", "pool", `databases: [{name: a, secretRef: {name: a}, capacity: 0}], `+template),
	)

	DescribeTable("refuses a pool", func(ctx SpecContext, name, pool, message string) {
		Expect(admin.Create(ctx, classFrom(name, pool), client.DryRunAll)).To(MatchError(ContainSubstring(message)))
	},
		Entry("without databases", "pool", ``, "storage.postgres.pool needs databases, a template or both"),
		Entry("with an empty list of databases", "pool", `databases: []`, "storage.postgres.pool needs databases, a template or both"),
		Entry("with the name of a database of the template", "pool", `databases: [{name: auto-1, secretRef: {name: a}, capacity: 0}], `+template, "names of the form auto-NUMBER"),
		Entry("with a template and a long name", strings.Repeat("a", 41), template, "metadata.name must have at most 40 characters"),
		Entry("with another name to drain", "pool", `template: {capacity: 2, maxDatabases: 1, drain: [db], `+cluster+`}`, "template.drain"),
	)

	DescribeTable("refuses a change of a template", func(ctx SpecContext, storage, message string) {
		class := classFrom("schema-template", template)
		Expect(admin.Create(ctx, class)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(admin.Delete(ctx, class)).To(Succeed()) })
		Expect(unstructured.SetNestedField(class.Object, specFrom(storage), "spec", "storage", "postgres", "pool", "template", "cloudNativePG", "storage")).To(Succeed())
		Expect(admin.Update(ctx, class)).To(MatchError(ContainSubstring(message)))
	},
		Entry("of the storage class", `{size: 10Gi}`, "storageClassName is immutable: use another SiteClass"),
		Entry("of the size to a smaller one", `{size: 9Gi, storageClassName: fast}`, "size may only grow"),
	)
})

// postgres is a spec that keeps records in Postgres.
func postgres(which string) string { return `{storage: {type: Postgres, postgres: ` + which + `}}` }

// dryRunCreate asks the API server whether it would take the Site, in YAML as a user writes it.
func dryRunCreate(ctx context.Context, name, spec string) error {
	return admin.Create(ctx, siteFrom("default", name, spec), client.DryRunAll)
}

func siteFrom(namespace, name, spec string) *unstructured.Unstructured {
	GinkgoHelper()
	s := &unstructured.Unstructured{Object: map[string]any{}}
	if spec != "" {
		s.Object["spec"] = specFrom(spec)
	}
	s.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Site"))
	s.SetNamespace(namespace)
	s.SetName(name)
	return s
}

func specFrom(text string) any {
	GinkgoHelper()
	var spec map[string]any
	Expect(yaml.Unmarshal([]byte(text), &spec)).To(Succeed())
	if spec == nil {
		return nil
	}
	return spec
}
