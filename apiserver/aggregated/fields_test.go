package aggregated_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// owners are the field managers of an object, with what each has, by manager and operation.
func owners(object patient) map[string]string {
	GinkgoHelper()
	all := map[string]string{}
	for _, entry := range object.ManagedFields {
		var fields bytes.Buffer
		Expect(json.Compact(&fields, entry.FieldsV1.GetRawBytes())).To(Succeed())
		all[entry.Manager+"/"+string(entry.Operation)] = entry.Time.String() + fields.String()
	}
	return all
}

// ownerSpecs alternate between REST and server-side apply.
func ownerSpecs(at *tenant) {
	apply := func(ctx SpecContext, manager, text string, more ...string) (string, error) {
		return kubectl(ctx, append([]string{"-n", at.namespace, "apply", "--server-side", "--field-manager", manager, "-f", file(text)}, more...)...)
	}
	put := func(ctx SpecContext, id, members string) {
		GinkgoHelper()
		answer := at.rest(ctx, http.MethodPut, "/"+id, `{"resourceType":"Patient","id":"`+id+`",`+members+`}`)
		Expect(answer.status).To(BeElementOf(http.StatusOK, http.StatusCreated), "%s", answer.body)
	}

	It("gives REST what it changes of an applied object", func(ctx SpecContext) {
		_, err := apply(ctx, "gitops", manifest("name: shared", `{active: true, gender: male, birthDate: "2019-04-01"}`))
		Expect(err).NotTo(HaveOccurred())
		Expect(owners(at.object(ctx, "shared"))).To(HaveLen(1))
		put(ctx, "shared", `"active":true,"gender":"female","multipleBirthBoolean":true`)

		object := at.object(ctx, "shared")
		Expect(owners(object)).To(HaveKeyWithValue("paddock-rest/Update", And(
			ContainSubstring(`"f:gender"`), ContainSubstring(`"f:multipleBirthBoolean"`), Not(ContainSubstring("f:active")))))
		Expect(owners(object)).To(HaveKeyWithValue("gitops/Apply", And(
			ContainSubstring(`"f:active"`), Not(ContainSubstring("f:gender")), Not(ContainSubstring("f:birthDate")))))
		Expect(at.object(ctx, "shared")).To(Equal(object), "to look changes nothing")
		var list struct{ Items []patient }
		Expect(decodeInto(at.kubectl(ctx, "get", "patients", "-o", "json", "--show-managed-fields", "--field-selector", "metadata.name=shared"), &list)).To(Succeed())
		Expect(list.Items).To(HaveLen(1))
		Expect(owners(list.Items[0])).To(Equal(owners(object)))

		_, err = apply(ctx, "gitops", manifest("name: shared", `{active: true, gender: male}`))
		Expect(err).To(MatchError(And(ContainSubstring(`conflict with "paddock-rest"`), ContainSubstring(".spec.gender"))))
		_, err = apply(ctx, "gitops", manifest("name: shared", `{active: true}`))
		Expect(err).NotTo(HaveOccurred(), "it has nothing of REST's")
		Expect(at.resource(ctx, "shared")).To(And(HaveKeyWithValue("gender", "female"), HaveKey("multipleBirthBoolean")))
		_, err = apply(ctx, "gitops", manifest("name: shared", `{active: true, gender: male}`), "--force-conflicts")
		Expect(err).NotTo(HaveOccurred())
		Expect(owners(at.object(ctx, "shared"))).To(HaveKeyWithValue("paddock-rest/Update", Not(ContainSubstring("f:gender"))))

		put(ctx, "shared", `"gender":"male","multipleBirthBoolean":true`)
		_, err = apply(ctx, "gitops", manifest("name: shared", `{gender: male}`))
		Expect(err).NotTo(HaveOccurred())
		Expect(at.resource(ctx, "shared")).NotTo(HaveKey("active"))
		_, err = apply(ctx, "gitops", manifest("name: shared", `{active: false}`))
		Expect(err).NotTo(HaveOccurred(), "nobody owns what REST took away")
		Expect(at.resource(ctx, "shared")).To(And(Not(HaveKey("gender")), HaveKeyWithValue("active", false)))
	})

	It("gives REST all of what it made", func(ctx SpecContext) {
		put(ctx, "rested", `"active":true,"name":[{"family":"Oak"}]`)
		Expect(at.object(ctx, "rested").ManagedFields).To(BeEmpty(), "absent costs nothing")
		_, err := apply(ctx, "gitops", manifest("name: rested", `{active: false}`))
		Expect(err).To(MatchError(And(ContainSubstring(`conflict with "paddock-rest"`), ContainSubstring(".spec.active"))))
		_, err = apply(ctx, "gitops", manifest("name: rested", `{active: true, gender: male}`))
		Expect(err).NotTo(HaveOccurred())
		Expect(at.resource(ctx, "rested")).To(And(HaveKey("name"), HaveKeyWithValue("gender", "male")))
		Expect(owners(at.object(ctx, "rested"))).To(And(HaveKey("paddock-rest/Update"), HaveKey("gitops/Apply")))
	})

	It("takes lists as a whole", func(ctx SpecContext) {
		_, err := apply(ctx, "one", manifest("name: listed", `{name: [{family: Oak}]}`))
		Expect(err).NotTo(HaveOccurred())
		_, err = apply(ctx, "two", manifest("name: listed", `{name: [{family: Elm}]}`))
		Expect(err).To(MatchError(And(ContainSubstring(`conflict with "one"`), ContainSubstring(".spec.name"), Not(ContainSubstring(".spec.name[")))))
	})

	It("forgets nobody when REST wrote often", func(ctx SpecContext) {
		_, err := apply(ctx, "gitops", manifest("name: often, labels: {a: b}", `{active: true, gender: male}`))
		Expect(err).NotTo(HaveOccurred())
		for n := range 30 {
			put(ctx, "often", `"active":true,"gender":"male","multipleBirthInteger":`+strings.Repeat("1", 1+n%7))
		}
		object := at.object(ctx, "often")
		Expect(object.Labels).To(HaveKeyWithValue("a", "b"))
		Expect(owners(object)).To(HaveKeyWithValue("gitops/Apply", ContainSubstring(`"f:labels":{"f:a":{}}`)))
		Expect(owners(object)).To(HaveKeyWithValue("paddock-rest/Update", And(ContainSubstring("f:multipleBirthInteger"), Not(ContainSubstring("f:labels")))))
		_, err = apply(ctx, "gitops", manifest("name: often, labels: {a: b}", `{active: true, gender: male}`))
		Expect(err).NotTo(HaveOccurred())
	})
}
