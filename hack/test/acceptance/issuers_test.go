package acceptance

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/hack/dev/localissuer"
	"github.com/paddock-health/paddock/hack/dev/module"
)

// issuerManifest is a tenant whose Site, of the namespace's name, takes tokens of an issuer:
// namespace, URL, CA, authorization. The editors there are a user and a group of that issuer.
const issuerManifest = tenantManifest + `---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: issuer-editor, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: paddock-editor}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: "site:%[1]s:integrator"}
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: "site:%[1]s:vets"}
---
apiVersion: paddock.health/v1alpha1
kind: Site
metadata: {name: %[1]s, namespace: %[1]s}
spec:
  access:
    issuers:
    - name: clinic
      url: %[2]s
      caBundle: %[3]s
      audiences: [%[1]s]
      claimMappings: {username: {claim: sub}, groups: {claim: groups}, site: {claim: site}}
      authorization: %[4]s
`

// enforcingManifest is issuerManifest for a Site that enforces references in a database: its URI.
const enforcingManifest = issuerManifest + `  storage: {type: Postgres, postgres: {external: {secretRef: {name: db}}}}
  fhir: {referentialIntegrity: Enforce}
---
apiVersion: v1
kind: Secret
metadata: {name: db, namespace: %[1]s}
type: paddock.health/dsn
stringData: {uri: %[5]q}
`

func startIssuer(ctx context.Context) *localissuer.Issuer {
	GinkgoHelper()
	bin, err := module.Bin()
	Expect(err).NotTo(HaveOccurred())
	issuer, err := localissuer.Start(ctx, filepath.Join(bin, "issuer"), GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred(), "the program comes from `make issuer`")
	DeferCleanup(issuer.Stop)
	return issuer
}

// serveTenant makes a Site with an issuer, and returns its addresses when each API server has the
// documents of the issuer. Until then its SMART configuration has status 503.
func serveTenant(ctx SpecContext, namespace string, issuer *localissuer.Issuer, authorization string) []string {
	GinkgoHelper()
	return serve(ctx, issuerManifest, namespace, issuer, authorization)
}

// serve is serveTenant for a manifest with the same values, and more of them.
func serve(ctx SpecContext, manifest, namespace string, issuer *localissuer.Issuer, authorization string, more ...any) []string {
	GinkgoHelper()
	values := []any{namespace, issuer.URL, base64.StdEncoding.EncodeToString([]byte(issuer.CA)), authorization}
	apply(ctx, manifest, append(values, more...)...)
	waitReady(ctx, namespace, namespace)
	addresses := slices.Clone(paddock.URLs)
	for i := range addresses {
		addresses[i] += "/site/" + namespace + "/fhir"
		Eventually(func() int {
			return send(request{method: "GET", url: addresses[i] + "/.well-known/smart-configuration", token: "none"}).status
		}).WithContext(ctx).ProbeEvery(10 * time.Millisecond).Should(Equal(http.StatusOK))
	}
	return addresses
}

// issued gets a token as clients do, for a Site of serveTenant.
func issued(ctx context.Context, issuer *localissuer.Issuer, site, client string, claims map[string]any, scopes ...string) string {
	GinkgoHelper()
	all := map[string]any{"site": site}
	maps.Copy(all, claims)
	token, err := issuer.Token(ctx, localissuer.Client{ID: client, Secret: "secret", Audience: []string{site}, Claims: all}, scopes...)
	Expect(err).NotTo(HaveOccurred())
	return token
}

// tokenReviews counts those that kube-apiserver has answered.
func tokenReviews(ctx SpecContext) int {
	GinkgoHelper()
	total := 0
	lines := bufio.NewScanner(bytes.NewReader([]byte(kubectl(ctx, "get", "--raw", "/metrics"))))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "apiserver_request_total{") && strings.Contains(line, `resource="tokenreviews"`) {
			n, err := strconv.Atoi(line[strings.LastIndexByte(line, ' ')+1:])
			Expect(err).NotTo(HaveOccurred())
			total += n
		}
	}
	return total
}

var _ = Describe("Issuers of a Site", func() {
	It("name callers, whose rights are those of RBAC in the Site's own namespace", func(ctx SpecContext) {
		issuer := startIssuer(ctx)
		oak := serveTenant(ctx, "clinic-oak", issuer, "RBAC")
		elm := serveTenant(ctx, "clinic-elm", issuer, "RBAC")
		integrator := issued(ctx, issuer, "clinic-oak", "integrator", nil)
		for i, base := range oak {
			path := base + "/patient/p" + strconv.Itoa(i)
			Expect(send(request{method: "PUT", url: path, body: patient(i), token: integrator}).status).To(Equal(http.StatusCreated))
			Expect(send(request{method: "GET", url: path, token: issued(ctx, issuer, "clinic-oak", "vera", map[string]any{"groups": "vets"})}).status).
				To(Equal(http.StatusOK), "the right of a group")
			Expect(send(request{method: "GET", url: path, token: issued(ctx, issuer, "clinic-oak", "stranger", nil)}).status).
				To(BeElementOf(http.StatusForbidden, http.StatusNotFound))
		}
		By("a token of one site is worthless at another")
		answer := send(request{method: "GET", url: elm[0] + "/patient", token: integrator})
		Expect(answer.status).To(Equal(http.StatusUnauthorized))
		Expect(answer.header.Get("WWW-Authenticate")).To(ContainSubstring("invalid_token"))
		By("rights on names of another namespace do not count")
		apply(ctx, `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: foreign, namespace: clinic-elm}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: paddock-editor}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: "site:clinic-oak:guest"}]
`)
		for site, base := range map[string]string{"clinic-oak": oak[0], "clinic-elm": elm[0]} {
			Expect(send(request{method: "GET", url: base + "/patient", token: issued(ctx, issuer, site, "guest", nil)}).status).
				To(BeElementOf(http.StatusForbidden, http.StatusNotFound), site)
		}
		By("tokens of the cluster are taken as before, also while the issuer is down")
		Expect(send(request{method: "GET", url: oak[0] + "/patient", token: editorOf(ctx, "clinic-oak", "clinic-oak")}).status).To(Equal(http.StatusOK))
		Expect(issuer.Stop()).To(Succeed())
		unseen := editorOf(ctx, "clinic-oak", "clinic-oak")
		for i, base := range oak {
			Expect(send(request{method: "PUT", url: base + "/patient/down-" + strconv.Itoa(i), body: patient(i), token: unseen}).status).To(Equal(http.StatusCreated))
			Expect(send(request{method: "GET", url: base + "/patient", token: unseen}).status).To(Equal(http.StatusOK))
		}
		Expect(issuer.Resume(ctx)).To(Succeed())
	}, NodeTimeout(2*time.Minute))

	It("grant SMART scopes, which decide on records", func(ctx SpecContext) {
		issuer := startIssuer(ctx)
		base := serveTenant(ctx, "clinic-smart", issuer, "SMART")[0]
		By("the address of the issuer is public")
		configuration := send(request{method: "GET", url: base + "/.well-known/smart-configuration", token: "none"})
		Expect(configuration.status).To(Equal(http.StatusOK), string(configuration.body))
		Expect(configuration.field("token_endpoint")).To(Equal(issuer.URL + "/oauth/token"))
		Expect(configuration.field("capabilities")).To(ContainElement("permission-v2"))
		Expect(string(send(request{method: "GET", url: base + "/metadata", token: "none"}).body)).To(ContainSubstring("SMART-on-FHIR"))
		Expect(send(request{method: "GET", url: paddock.URLs[0] + "/site/demo/fhir/.well-known/smart-configuration", token: "none"}).status).
			To(Equal(http.StatusNotFound), "a Site without issuers")
		writer := issued(ctx, issuer, "clinic-smart", "writer", nil, "system/Patient.cruds", "openid")
		reader := issued(ctx, issuer, "clinic-smart", "integrator", nil, "system/Patient.rs")
		Expect(send(request{method: "PUT", url: base + "/patient/rex", body: patient(1), token: writer}).status).To(Equal(http.StatusCreated))
		Expect(send(request{method: "GET", url: base + "/patient/rex", token: reader}).status).To(Equal(http.StatusOK))
		Expect(send(request{method: "GET", url: base + "/patient?_count=1", token: reader}).status).To(Equal(http.StatusOK))
		for _, missing := range []request{
			{method: "PUT", url: base + "/patient/rex", body: patient(2), token: reader},
			{method: "DELETE", url: base + "/patient/rex", token: reader},
			{method: "GET", url: base + "/device", token: writer},
			{method: "GET", url: base + "/patient/rex", token: issued(ctx, issuer, "clinic-smart", "app", nil, "patient/*.cruds")},
		} {
			answer := send(missing)
			Expect(answer.status).To(Equal(http.StatusForbidden), "%s %s: %s", missing.method, missing.url, answer.body)
			Expect(string(answer.body)).To(ContainSubstring(".r4.fhir.paddock.health"))
		}
	}, NodeTimeout(3*time.Minute))

	It("grant SMART scopes that open some records only", func(ctx SpecContext) {
		issuer := startIssuer(ctx)
		base := serveTenant(ctx, "clinic-scopes", issuer, "SMART")[0]
		token := func(claims map[string]any, scopes ...string) string {
			GinkgoHelper()
			return issued(ctx, issuer, "clinic-scopes", "app", claims, scopes...)
		}
		writer := token(nil, "system/*.cruds")
		for path, body := range map[string]string{
			"/patient/rex":    `{"resourceType":"Patient","id":"rex","gender":"male"}`,
			"/patient/luna":   `{"resourceType":"Patient","id":"luna","gender":"female"}`,
			"/device/collar":  `{"resourceType":"Device","id":"collar","patient":{"reference":"Patient/rex"}}`,
			"/device/harness": `{"resourceType":"Device","id":"harness","patient":{"reference":"Patient/luna"}}`,
		} {
			Expect(send(request{method: "PUT", url: base + path, body: body, token: writer}).status).To(Equal(http.StatusCreated), path)
		}
		males, ofRex := token(nil, "user/Patient.rus?gender=male"), token(map[string]any{"patient": "rex"}, "patient/*.rs")
		for path, want := range map[string][2]int{
			"/patient/rex": {http.StatusOK, http.StatusOK}, "/patient/luna": {http.StatusNotFound, http.StatusNotFound},
			"/patient/luna/_history/1": {http.StatusNotFound, http.StatusNotFound},
			"/patient/rex/_history":    {http.StatusForbidden, http.StatusForbidden},
			"/device/collar":           {http.StatusForbidden, http.StatusOK}, "/device/harness": {http.StatusForbidden, http.StatusNotFound},
		} {
			Expect(send(request{method: "GET", url: base + path, token: males}).status).To(Equal(want[0]), "males: %s", path)
			Expect(send(request{method: "GET", url: base + path, token: ofRex}).status).To(Equal(want[1]), "of rex: %s", path)
		}
		for _, reader := range []string{males, ofRex} {
			Expect(send(request{method: "GET", url: base + "/patient?_total=accurate", token: reader}).field("total")).To(BeEquivalentTo(1))
			Expect(string(send(request{method: "GET", url: base + "/patient?_id=luna", token: reader}).body)).NotTo(ContainSubstring(`"id":"luna"`))
		}
		Expect(send(request{method: "GET", url: base + "/device?_total=accurate", token: ofRex}).field("total")).To(BeEquivalentTo(1))
		By("writes stay within what is open")
		put := func(id, gender string) int {
			return send(request{method: "PUT", url: base + "/patient/" + id, body: `{"resourceType":"Patient","id":"` + id + `","gender":"` + gender + `","active":true}`, token: males}).status
		}
		Expect(put("rex", "male")).To(Equal(http.StatusOK))
		Expect(put("rex", "female")).To(Equal(http.StatusForbidden))
		Expect(put("luna", "male")).To(BeElementOf(http.StatusForbidden, http.StatusConflict))
		By("records that were deleted are as closed as before")
		for _, path := range []string{"/device/collar", "/device/harness"} {
			Expect(send(request{method: "DELETE", url: base + path, token: writer}).status).To(Equal(http.StatusOK))
		}
		Expect(send(request{method: "GET", url: base + "/device/collar", token: ofRex}).status).To(Equal(http.StatusGone))
		Expect(send(request{method: "GET", url: base + "/device/harness", token: ofRex}).status).To(Equal(http.StatusNotFound))
	}, NodeTimeout(3*time.Minute))

	It("grant SMART scopes that do not reveal other records by references", func(ctx SpecContext) {
		issuer := startIssuer(ctx)
		_, err := postgres.CreateDatabase(ctx, "references", "secret")
		Expect(err).NotTo(HaveOccurred())
		base := serve(ctx, enforcingManifest, "clinic-references", issuer, "SMART", databaseURI("references", "secret"))[0]
		writer := issued(ctx, issuer, "clinic-references", "app", nil, "system/*.cruds")
		ofRex := issued(ctx, issuer, "clinic-references", "app", map[string]any{"patient": "rex"}, "patient/*.cruds")
		put := func(token, path, body string) response {
			GinkgoHelper()
			return send(request{method: "PUT", url: base + path, body: body, token: token})
		}
		owned := func(active string) string {
			return `{"resourceType":"Patient","id":"rex","active":` + active + `,"managingOrganization":{"reference":"Organization/oak"}}`
		}
		Expect(put(writer, "/organization/oak", `{"resourceType":"Organization","id":"oak","name":"Oak"}`).status).To(Equal(http.StatusCreated))
		Expect(put(writer, "/patient/rex", owned("true")).status).To(Equal(http.StatusCreated))
		Expect(put(writer, "/patient/luna", `{"resourceType":"Patient","id":"luna"}`).status).To(Equal(http.StatusCreated))
		linking := func(id string) response {
			return put(ofRex, "/device/collar", `{"resourceType":"Device","id":"collar","patient":{"reference":"Patient/rex"},"extension":[`+
				`{"url":"https://example.org/friend","valueReference":{"reference":"Patient/`+id+`"}}]}`)
		}
		existing, missing := linking("luna"), linking("none")
		Expect(existing.status).To(Equal(http.StatusUnprocessableEntity), "%s", existing.body)
		Expect(missing.status).To(Equal(http.StatusUnprocessableEntity), "%s", missing.body)
		Expect(strings.ReplaceAll(string(existing.body), "luna", "none")).To(Equal(string(missing.body)))
		Expect(linking("rex").status).To(Equal(http.StatusCreated))
		Expect(put(ofRex, "/patient/rex", owned("false")).status).To(Equal(http.StatusOK), "a reference that the record has already")
	}, NodeTimeout(3*time.Minute))

	It("cannot be imitated: bad tokens are 401, and cost at most one review or one fetch", func(ctx SpecContext) {
		issuer, other := startIssuer(ctx), startIssuer(ctx)
		address := serveTenant(ctx, "clinic-ash", issuer, "RBAC")[0] + "/patient"
		good := issuer.Claims("clinic-ash", "clinic-ash")
		token, err := issuer.SignClaims(ctx, good)
		Expect(err).NotTo(HaveOccurred())
		Expect(send(request{method: "GET", url: address, token: token}).status).To(Equal(http.StatusOK))
		bad, err := issuer.BadTokens(ctx, good, other, "paddock.health/clinic-ash/clinic-ash")
		Expect(err).NotTo(HaveOccurred())
		fetched, err := issuer.Fetches(ctx)
		Expect(err).NotTo(HaveOccurred())
		refuse := func(name string) {
			GinkgoHelper()
			answer := send(request{method: "GET", url: address, token: bad[name]})
			Expect(answer.status).To(Equal(http.StatusUnauthorized), "%s: %s", name, answer.body)
			Expect(answer.header.Get("WWW-Authenticate")).To(ContainSubstring(`error="invalid_token"`), name)
		}
		for _, name := range localissuer.ForeignTokens {
			before := tokenReviews(ctx)
			refuse(name)
			Expect(tokenReviews(ctx)-before).To(BeNumerically("<=", 1), name)
			delete(bad, name)
		}
		Expect(len(bad)).To(BeNumerically(">=", 40))
		before := tokenReviews(ctx)
		for _, name := range slices.Sorted(maps.Keys(bad)) {
			refuse(name)
		}
		Expect(tokenReviews(ctx)).To(Equal(before), "no token that names the issuer is reviewed")
		after, err := issuer.Fetches(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(after-fetched).To(BeNumerically("<=", 1), "for all of the unknown keys together")
		strangers, err := other.Fetches(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(strangers).To(BeZero())
		AddReportEntry("bad tokens", len(bad)+len(localissuer.ForeignTokens))
	}, NodeTimeout(3*time.Minute))
})
