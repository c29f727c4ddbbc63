import ca.uhn.fhir.context.FhirContext;
import ca.uhn.fhir.parser.StrictErrorHandler;
import ca.uhn.fhir.rest.api.MethodOutcome;
import ca.uhn.fhir.rest.client.api.IGenericClient;
import ca.uhn.fhir.rest.client.interceptor.BearerTokenAuthInterceptor;
import ca.uhn.fhir.rest.gclient.StringClientParam;
import ca.uhn.fhir.rest.server.exceptions.AuthenticationException;
import ca.uhn.fhir.rest.server.exceptions.BaseServerResponseException;
import ca.uhn.fhir.rest.server.exceptions.InvalidRequestException;
import ca.uhn.fhir.rest.server.exceptions.NotImplementedOperationException;
import ca.uhn.fhir.rest.server.exceptions.PreconditionFailedException;
import ca.uhn.fhir.rest.server.exceptions.ResourceGoneException;
import ca.uhn.fhir.rest.server.exceptions.ResourceNotFoundException;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import org.hl7.fhir.r4.model.BooleanType;
import org.hl7.fhir.r4.model.Bundle;
import org.hl7.fhir.r4.model.CapabilityStatement;
import org.hl7.fhir.r4.model.DateTimeType;
import org.hl7.fhir.r4.model.DateType;
import org.hl7.fhir.r4.model.DecimalType;
import org.hl7.fhir.r4.model.Enumerations.AdministrativeGender;
import org.hl7.fhir.r4.model.IntegerType;
import org.hl7.fhir.r4.model.OperationOutcome;
import org.hl7.fhir.r4.model.Organization;
import org.hl7.fhir.r4.model.Parameters;
import org.hl7.fhir.r4.model.Patient;
import org.hl7.fhir.r4.model.Reference;
import org.hl7.fhir.r4.model.RelatedPerson;
import org.hl7.fhir.r4.model.Resource;

/**
 * Exercises a site's FHIR API with the HAPI FHIR client. It writes "ok: {step}" after each step that
 * succeeded and ends at the first that fails.
 *
 * <p>Environment: FHIR_BASE is the address of the site's API, FHIR_TOKEN a token that may read and
 * write there. FHIR_RECORDS lists records (type and id) to read and write back, which all have the
 * tag FHIR_TAG. FHIR_LANGUAGE is the value to change their language to. FHIR_ATOMIC is yes where the
 * site can write several records in one transaction.
 */
public final class Exercise {
  private static final String BASE = System.getenv("FHIR_BASE");
  private static final String[] TAG = System.getenv("FHIR_TAG").split("\\|");
  private static final String[] RECORDS = System.getenv("FHIR_RECORDS").split(" ");
  private static final String LANGUAGE = System.getenv("FHIR_LANGUAGE");
  private static final boolean ATOMIC = "yes".equals(System.getenv("FHIR_ATOMIC"));
  /** Sets the records of this run apart from those of others. */
  private static final String RUN = "run-" + System.currentTimeMillis();
  private static final String IDENTIFIER_SYSTEM = "urn:clients:run";
  private static final String ORGANIZATION_URL = "urn:uuid:0d4c6f4a-6b0b-4c0e-9a55-6a1d5b1f7c11";

  private final FhirContext context = FhirContext.forR4();
  private final IGenericClient client;
  private final List<String> patientIds = new ArrayList<>();
  private Patient rex;
  private Patient stale;

  private Exercise() {
    context.setParserErrorHandler(new StrictErrorHandler());
    client = context.newRestfulGenericClient(BASE);
    client.registerInterceptor(new BearerTokenAuthInterceptor(System.getenv("FHIR_TOKEN")));
    for (String reference : RECORDS) {
      if (reference.startsWith("Patient/")) {
        patientIds.add(reference.substring("Patient/".length()));
      }
    }
    patientIds.sort(null);
  }

  public static void main(String[] args) {
    Exercise exercise = new Exercise();
    step("capabilities", exercise::capabilities);
    step("write back", exercise::writeBack);
    step("create", exercise::create);
    step("conditional create", exercise::conditionalCreate);
    step("vread", exercise::vread);
    step("history", exercise::history);
    step("all pages", exercise::allPages);
    step("include", exercise::include);
    step("operations", exercise::operations);
    step("batch", exercise::batch);
    step("transaction", exercise::transaction);
    step("errors", exercise::errors);
    step("delete", exercise::delete);
  }

  private static void step(String name, Runnable part) {
    part.run();
    System.out.println("ok: " + name);
  }

  private void capabilities() {
    CapabilityStatement statement = client.capabilities().ofType(CapabilityStatement.class).execute();
    equal(statement.getImplementation().getUrl(), BASE);
    IGenericClient stranger = context.newRestfulGenericClient(BASE);
    refused(AuthenticationException.class, "login_required", () -> stranger.search().forResource(Patient.class).returnBundle(Bundle.class).execute());
  }

  private void writeBack() {
    for (String reference : RECORDS) {
      update(read(reference));
      Resource resource = read(reference);
      resource.setLanguage(LANGUAGE);
      update(resource);
      Resource last = read(reference);
      equal(last.getLanguage(), LANGUAGE);
      equal(update(last).getMeta().getVersionId(), last.getMeta().getVersionId());
    }
  }

  private Resource read(String reference) {
    String[] parts = reference.split("/");
    return (Resource) client.read().resource(parts[0]).withId(parts[1]).execute();
  }

  private Resource update(Resource resource) {
    return (Resource) client.update().resource(resource).execute().getResource();
  }

  private static Patient patient(String value) {
    Patient patient = new Patient();
    patient.addIdentifier().setSystem(IDENTIFIER_SYSTEM).setValue(RUN + "-" + value);
    patient.addName().setText("Жучка 🐕").setFamily("O'Brien-Ångström").addGiven("Ñandú");
    patient.setBirthDateElement(new DateType("2021-03-04"));
    patient.getBirthDateElement().addExtension("http://hl7.org/fhir/StructureDefinition/patient-birthTime", new DateTimeType("2021-03-04T05:06:07Z"));
    patient.addExtension("https://clinic.example.org/fhir/StructureDefinition/weight", new DecimalType(new BigDecimal("1.50")));
    Organization breeder = new Organization().setName("動物病院");
    patient.setManagingOrganization(new Reference(breeder));
    return patient;
  }

  private void create() {
    MethodOutcome outcome = client.create().resource(patient("rex")).execute();
    equal(outcome.getCreated(), true);
    equal(outcome.getId().getVersionIdPart(), "1");
    rex = client.read().resource(Patient.class).withId(outcome.getId().getIdPart()).execute();
    equal(((DecimalType) rex.getExtension().get(0).getValue()).getValueAsString(), "1.50");
    equal(((Organization) rex.getManagingOrganization().getResource()).getName(), "動物病院");
  }

  private void conditionalCreate() {
    MethodOutcome outcome = client.create().resource(patient("rex"))
        .conditional().where(Patient.IDENTIFIER.exactly().systemAndIdentifier(IDENTIFIER_SYSTEM, RUN + "-rex")).execute();
    equal(outcome.getId().getIdPart(), rex.getIdElement().getIdPart());
    equal(outcome.getId().getVersionIdPart(), "1");
  }

  private void vread() {
    String first = text(rex);
    rex = (Patient) update(rex.copy().setActive(true));
    equal(rex.getMeta().getVersionId(), "2");
    String id = rex.getIdElement().getIdPart();
    stale = client.read().resource(Patient.class).withIdAndVersion(id, "1").execute();
    equal(text(stale), first);
  }

  private void history() {
    Bundle bundle = client.history().onInstance("Patient/" + rex.getIdElement().getIdPart()).returnBundle(Bundle.class).execute();
    equal(bundle.getEntry().stream().map(entry -> entry.getResource().getMeta().getVersionId()).toList(), List.of("2", "1"));
  }

  private void allPages() {
    List<String> found = new ArrayList<>();
    Bundle page = client.search().forResource(Patient.class).withTag(TAG[0], TAG[1]).count(5).returnBundle(Bundle.class).execute();
    while (true) {
      page.getEntry().forEach(entry -> found.add(entry.getResource().getIdElement().getIdPart()));
      if (page.getLink(Bundle.LINK_NEXT) == null) {
        break;
      }
      equal(page.getEntry().size(), 5);
      page = client.loadPage().next(page).execute();
    }
    found.sort(null);
    equal(found, patientIds);
  }

  private void include() {
    Bundle page = client.search().forResource(RelatedPerson.class).withTag(TAG[0], TAG[1])
        .include(RelatedPerson.INCLUDE_PATIENT).returnBundle(Bundle.class).execute();
    List<String> included = page.getEntry().stream().filter(entry -> entry.getSearch().getMode() == Bundle.SearchEntryMode.INCLUDE)
        .map(entry -> entry.getResource().getIdElement().getIdPart()).toList();
    equal(included.isEmpty(), false);
    equal(patientIds.containsAll(included), true);
  }

  /** The library calls operations by POST, unless it has to use GET. */
  private void operations() {
    Parameters parameters = new Parameters().addParameter("_count", new IntegerType(1));
    Bundle everything = client.operation().onInstance("Patient/" + rex.getIdElement().getIdPart()).named("$everything")
        .withParameters(parameters).returnResourceType(Bundle.class).execute();
    equal(everything.getEntryFirstRep().getResource().getIdElement().getIdPart(), rex.getIdElement().getIdPart());
    OperationOutcome outcome = (OperationOutcome) client.validate().resource(patient("valid")).execute().getOperationOutcome();
    equal(outcome.getIssue().stream().anyMatch(issue -> issue.getSeverity() == OperationOutcome.IssueSeverity.ERROR), false);
  }

  private void batch() {
    Bundle batch = new Bundle().setType(Bundle.BundleType.BATCH);
    String id = rex.getIdElement().getIdPart();
    batch.addEntry().getRequest().setMethod(Bundle.HTTPVerb.GET).setUrl("Patient/" + id);
    batch.addEntry().setResource(patient("batch")).getRequest().setMethod(Bundle.HTTPVerb.POST).setUrl("Patient");
    batch.addEntry().setResource(patient("rex")).getRequest().setMethod(Bundle.HTTPVerb.POST).setUrl("Patient")
        .setIfNoneExist("identifier=" + IDENTIFIER_SYSTEM + "|" + RUN + "-rex");
    batch.addEntry().getRequest().setMethod(Bundle.HTTPVerb.GET).setUrl("Patient/nobody");
    batch.addEntry().setResource(patient("put").setId(RUN)).getRequest().setMethod(Bundle.HTTPVerb.PUT).setUrl("Patient/" + RUN);
    Bundle answer = client.transaction().withBundle(batch).execute();
    equal(answer.getType(), Bundle.BundleType.BATCHRESPONSE);
    equal(statuses(answer), List.of("200", "201", "200", "404", "201"));
    equal(answer.getEntry().get(0).getResource().getIdElement().getIdPart(), id);
    equal(answer.getEntry().get(2).getResource().getIdElement().getIdPart(), id);
    checkOutcome((OperationOutcome) answer.getEntry().get(3).getResponse().getOutcome(), "resource_not_found");
  }

  private void transaction() {
    Bundle transaction = new Bundle().setType(Bundle.BundleType.TRANSACTION);
    transaction.addEntry().setFullUrl(ORGANIZATION_URL).setResource(new Organization().setName(RUN + " – Tierheim"))
        .getRequest().setMethod(Bundle.HTTPVerb.POST).setUrl("Organization");
    Patient animal = patient("atomic");
    animal.setManagingOrganization(new Reference(ORGANIZATION_URL)).setId(RUN + "-atomic");
    transaction.addEntry().setResource(animal).getRequest().setMethod(Bundle.HTTPVerb.PUT).setUrl("Patient/" + RUN + "-atomic");
    if (!ATOMIC) {
      refused(NotImplementedOperationException.class, "not_supported", () -> client.transaction().withBundle(transaction).execute());
      return;
    }
    Bundle answer = client.transaction().withBundle(transaction).execute();
    equal(answer.getType(), Bundle.BundleType.TRANSACTIONRESPONSE);
    equal(statuses(answer), List.of("201", "201"));
    Patient written = (Patient) answer.getEntry().get(1).getResource();
    equal(written.getManagingOrganization().getReference(), "Organization/" + answer.getEntry().get(0).getResource().getIdElement().getIdPart());
  }

  private static List<String> statuses(Bundle answer) {
    return answer.getEntry().stream().map(entry -> entry.getResponse().getStatus().substring(0, 3)).toList();
  }

  private void errors() {
    refused(ResourceNotFoundException.class, "resource_not_found", () -> read("Patient/nobody"));
    refused(InvalidRequestException.class, "invalid_query", () -> client.search().forResource(Patient.class)
        .where(new StringClientParam("colour").matches().value("brown")).returnBundle(Bundle.class).execute());
    Patient wrong = patient("wrong");
    wrong.addContact().setGender(AdministrativeGender.MALE); // pat-1: a contact needs a name, a telecom, an address or an organization
    refused(InvalidRequestException.class, "pat-1", () -> client.create().resource(wrong).execute());
    // The client sends the version of the resource's id as If-Match.
    refused(PreconditionFailedException.class, "version_conflict", () -> update(stale.setActive(false)));
  }

  private void delete() {
    String id = rex.getIdElement().getIdPart();
    client.delete().resourceById("Patient", id).execute();
    refused(ResourceGoneException.class, "deleted", () -> read("Patient/" + id));
  }

  /** Expects a request to fail with an exception that has an OperationOutcome. */
  private static void refused(Class<? extends BaseServerResponseException> kind, String code, Supplier<?> request) {
    try {
      request.get();
    } catch (BaseServerResponseException error) {
      equal(error.getClass(), kind);
      checkOutcome((OperationOutcome) error.getOperationOutcome(), code);
      return;
    }
    throw new AssertionError("the request succeeded");
  }

  private static void checkOutcome(OperationOutcome outcome, String code) {
    OperationOutcome.OperationOutcomeIssueComponent issue = outcome.getIssueFirstRep();
    equal(issue.getSeverity(), OperationOutcome.IssueSeverity.ERROR);
    equal(issue.getDetails().getCodingFirstRep().getCode(), code);
  }

  private String text(Resource resource) {
    return context.newJsonParser().encodeResourceToString(resource);
  }

  private static void equal(Object got, Object want) {
    if (!want.equals(got)) {
      throw new AssertionError(got + " is not " + want);
    }
  }
}
