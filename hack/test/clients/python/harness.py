"""What the programs of this folder share.

Each exercises a site's FHIR API with one client library and writes "ok: {step}" after each step that
succeeded; it ends at the first that fails.

Environment: FHIR_BASE is the address of the site's API, FHIR_TOKEN a token that may read and write
there. FHIR_RECORDS lists records (type and id) to read and write back, which all have the tag
FHIR_TAG. FHIR_LANGUAGE is the value to change their language to. FHIR_ATOMIC is yes where the site
can write several records in one transaction.
"""

import contextlib
import os
import time

from fhir.resources.R4B import get_fhir_model_class

BASE = os.environ["FHIR_BASE"]
TOKEN = os.environ["FHIR_TOKEN"]
TAG = os.environ["FHIR_TAG"]
LANGUAGE = os.environ["FHIR_LANGUAGE"]
ATOMIC = os.environ["FHIR_ATOMIC"] == "yes"
REFERENCES = [reference.split("/") for reference in os.environ["FHIR_RECORDS"].split()]
PATIENT_IDS = sorted(id for kind, id in REFERENCES if kind == "Patient")

# RUN sets the records of this run apart from those of others.
RUN = f"run-{time.time_ns()}"
IDENTIFIER_SYSTEM = "urn:clients:run"
ORGANIZATION_URL = "urn:uuid:0d4c6f4a-6b0b-4c0e-9a55-6a1d5b1f7c11"


def equal(got, want):
    assert got == want, f"got {got!r}, want {want!r}"


def criteria(value):
    """Returns the search that finds patient(value)."""
    return f"identifier={IDENTIFIER_SYSTEM}|{RUN}-{value}"


def patient(value, **more):
    """Returns a Patient to create."""
    return {
        "resourceType": "Patient",
        "identifier": [{"system": IDENTIFIER_SYSTEM, "value": f"{RUN}-{value}"}],
        "name": [{"text": "Жучка 🐕", "family": "O'Brien-Ångström", "given": ["Ñandú"]}],
        "birthDate": "2021-03-04",
        "extension": [{"url": "https://clinic.example.org/fhir/StructureDefinition/weight", "valueDecimal": 4.25}],
        "contained": [{"resourceType": "Organization", "id": "breeder", "name": "動物病院"}],
        "managingOrganization": {"reference": "#breeder"},
        **more,
    }


def batch_bundle(existing):
    """Returns a batch that reads and creates. One entry creates what exists and another reads what does not."""
    return {
        "resourceType": "Bundle",
        "type": "batch",
        "entry": [
            {"request": {"method": "GET", "url": f"Patient/{existing}"}},
            {"request": {"method": "POST", "url": "Patient"}, "resource": patient("batch")},
            {"request": {"method": "POST", "url": "Patient", "ifNoneExist": criteria("rex")}, "resource": patient("rex")},
            {"request": {"method": "GET", "url": "Patient/nobody"}},
            {"request": {"method": "PUT", "url": f"Patient/{RUN}"}, "resource": patient("put", id=RUN)},
        ],
    }


def check_batch(answer, existing):
    """Checks the answer to batch_bundle."""
    validated(answer)
    equal(answer["type"], "batch-response")
    equal([entry["response"]["status"][:3] for entry in answer["entry"]], ["200", "201", "200", "404", "201"])
    equal(answer["entry"][0]["resource"]["id"], existing)
    equal(answer["entry"][2]["resource"]["id"], existing)
    check_outcome(answer["entry"][3]["response"]["outcome"], "resource_not_found")


def transaction_bundle():
    """Returns a transaction that creates an organization and a patient that refers to it."""
    id = f"{RUN}-atomic"
    animal = patient("atomic", id=id, managingOrganization={"reference": ORGANIZATION_URL})
    del animal["contained"]
    return {
        "resourceType": "Bundle",
        "type": "transaction",
        "entry": [
            {
                "fullUrl": ORGANIZATION_URL,
                "request": {"method": "POST", "url": "Organization"},
                "resource": {"resourceType": "Organization", "name": f"{RUN} – Tierheim"},
            },
            {"request": {"method": "PUT", "url": f"Patient/{id}"}, "resource": animal},
        ],
    }


def check_transaction(answer):
    """Checks the answer to transaction_bundle."""
    validated(answer)
    equal(answer["type"], "transaction-response")
    equal([entry["response"]["status"][:3] for entry in answer["entry"]], ["201", "201"])
    organization, animal = [entry["resource"] for entry in answer["entry"]]
    equal(animal["managingOrganization"]["reference"], f"Organization/{organization['id']}")


def check_outcome(outcome, code):
    """Checks an OperationOutcome that a library made available."""
    validated(outcome)
    equal(outcome["resourceType"], "OperationOutcome")
    issue = outcome["issue"][0]
    equal(issue["severity"], "error")
    assert issue["details"]["coding"][0]["code"] == code, f"got {issue!r}, want the code {code!r}"


def failure(kind, call, *args):
    """Returns the exception of a call that has to fail with one of a kind."""
    try:
        call(*args)
    except kind as error:
        return error
    raise AssertionError(f"the request succeeded, want a failure with {kind.__name__}")


def validated(resource):
    """Validates a resource by the models of fhir.resources and returns it."""
    get_fhir_model_class(resource["resourceType"]).model_validate(resource)
    return resource


@contextlib.contextmanager
def step(name):
    """Runs one part and says that it succeeded."""
    yield
    print(f"ok: {name}", flush=True)
