"""Exercises a site's FHIR API with fhirclient, the SMART on FHIR library; see harness.py."""

import contextlib

import requests
from fhirclient.auth import FHIRAuth
from fhirclient.client import FHIRClient
from fhirclient.models import patient as patients, relatedperson
from fhirclient.models.bundle import Bundle
from fhirclient.models.fhirelementfactory import FHIRElementFactory
from fhirclient.models.operationoutcome import OperationOutcome
from fhirclient.server import FHIRNotFoundException, FHIRUnauthorizedException

from harness import (
    ATOMIC, BASE, LANGUAGE, PATIENT_IDS, REFERENCES, TAG, TOKEN,
    batch_bundle, check_batch, check_outcome, check_transaction, criteria, equal, failure, patient, step, transaction_bundle, validated,
)

Patient = patients.Patient
server = FHIRClient(settings={"app_id": "clients", "api_base": BASE}).server


@contextlib.contextmanager
def header(name, value):
    """Sends a header with every request."""
    server.session.headers[name] = value
    yield
    del server.session.headers[name]


def outcome(error):
    """Returns the OperationOutcome of an exception as the library's model reads it."""
    return OperationOutcome(error.response.json()).as_json()


def read(kind, id):
    return type(FHIRElementFactory.instantiate(kind, None)).read(id, server)


with step("capabilities"):
    equal(validated(server.capabilityStatement.as_json())["implementation"]["url"], BASE)
    check_outcome(outcome(failure(FHIRUnauthorizedException, Patient.read, "nobody", server)), "login_required")

server.auth = FHIRAuth.create("oauth2", {"access_token": TOKEN})

with step("write back"):
    for kind, id in REFERENCES:
        read(kind, id).update()
        resource = read(kind, id)
        resource.language = LANGUAGE
        resource.update()
        last = read(kind, id)
        equal(last.language, LANGUAGE)
        equal(validated(last.update())["meta"]["versionId"], last.meta.versionId)

with step("create"):
    rex = Patient(Patient(patient("rex")).create(server))
    equal(rex.meta.versionId, "1")
    equal(Patient.read(rex.id, server).as_json(), rex.as_json())

with step("conditional create"), header("If-None-Exist", criteria("rex")):
    equal(Patient(patient("rex")).create(server)["id"], rex.id)

with step("vread"):
    first, rex.active = rex.as_json(), True
    rex = Patient(rex.update(server))
    equal(rex.meta.versionId, "2")
    equal(Patient.read_from(f"Patient/{rex.id}/_history/1", server).as_json(), first)

with step("history"):
    history = Bundle.read_from(f"Patient/{rex.id}/_history", server)
    equal([entry.resource.meta.versionId for entry in history.entry], ["2", "1"])

with step("all pages"):
    search = Patient.where({"_tag": TAG, "_count": "5"})
    equal([len(page.entry) for page in search.perform_iter(server)], [5, 5, 5, 1])
    equal(sorted(resource.id for resource in search.perform_resources_iter(server)), PATIENT_IDS)

with step("include"):
    search = relatedperson.RelatedPerson.where({"_tag": TAG}).include("patient")
    entries = [entry for page in search.perform_iter(server) for entry in page.entry]
    included = [entry.resource.id for entry in entries if entry.search.mode == "include"]
    assert included and set(included) <= set(PATIENT_IDS)

with step("batch"):
    check_batch(Bundle(batch_bundle(rex.id)).create(server), rex.id)

with step("transaction"):
    if ATOMIC:
        check_transaction(Bundle(transaction_bundle()).create(server))
    else:
        check_outcome(outcome(failure(requests.HTTPError, Bundle(transaction_bundle()).create, server)), "not_supported")

with step("errors"):
    check_outcome(outcome(failure(FHIRNotFoundException, Patient.read, "nobody", server)), "resource_not_found")
    check_outcome(outcome(failure(requests.HTTPError, Patient.read_from, "Patient?colour=brown", server)), "invalid_query")
    check_outcome(outcome(failure(requests.HTTPError, Patient(patient("wrong", gender="brown")).create, server)), "invalid_code")
    rex.active = False
    with header("If-Match", 'W/"1"'):
        check_outcome(outcome(failure(requests.HTTPError, rex.update, server)), "version_conflict")

with step("delete"):
    rex.delete(server)
    check_outcome(outcome(failure(requests.HTTPError, Patient.read, rex.id, server)), "deleted")
