"""Exercises a site's FHIR API with fhirpy; see harness.py."""

import json

from fhirpy import SyncFHIRClient
from fhirpy.base.exceptions import AuthorizationError, MultipleResourcesFound, OperationOutcome, ResourceNotFound

from harness import (
    ATOMIC, BASE, IDENTIFIER_SYSTEM, LANGUAGE, PATIENT_IDS, REFERENCES, RUN, TAG, TOKEN,
    batch_bundle, check_batch, check_outcome, check_transaction, criteria, equal, failure, patient, step, transaction_bundle, validated,
)


def connect(**headers):
    return SyncFHIRClient(BASE, authorization=f"Bearer {TOKEN}", extra_headers=headers or None)


client = connect()


def animal(data, connection=client):
    return connection.resource("Patient", **data)


def outcome(error):
    """Returns the OperationOutcome of an exception. Only one kind of exception has it as a member."""
    return error.resource if isinstance(error, OperationOutcome) else json.loads(str(error))


with step("capabilities"):
    statement = client.execute("metadata", method="get")
    equal(validated(statement)["implementation"]["url"], BASE)
    check_outcome(outcome(failure(AuthorizationError, SyncFHIRClient(BASE).resources("Patient").fetch)), "login_required")

with step("write back"):
    for kind, id in REFERENCES:
        client.reference(kind, id).to_resource().save()
        resource = client.reference(kind, id).to_resource()
        resource["language"] = LANGUAGE
        resource.save()
        last = client.reference(kind, id).to_resource()
        equal(last["language"], LANGUAGE)
        version = last["meta"]["versionId"]
        last.save()
        equal(last["meta"]["versionId"], version)
        validated(last.serialize())

with step("create"):
    rex = animal(patient("rex"))
    rex.save()
    equal(rex["meta"]["versionId"], "1")
    equal(client.reference("Patient", rex.id).to_resource().serialize(), rex.serialize())

with step("conditional create"):
    again = animal(patient("rex"), connect(**{"If-None-Exist": criteria("rex")})).save()
    equal(again.id, rex.id)

with step("conditional update"):
    found = client.resources("Patient").search(identifier=f"{IDENTIFIER_SYSTEM}|{RUN}-rex")
    first = rex.serialize()
    rex, created = found.update(animal(patient("rex", gender="female")))
    equal((created, rex["meta"]["versionId"], rex.id), (False, "2", first["id"]))

with step("vread"):
    equal(client.execute(f"Patient/{rex.id}/_history/1", method="get"), first)

with step("history"):
    history = validated(client.execute(f"Patient/{rex.id}/_history", method="get"))
    equal([entry["resource"]["meta"]["versionId"] for entry in history["entry"]], ["2", "1"])

with step("all pages"):
    resources = client.resources("Patient").search(_tag=TAG).limit(5)
    equal(len(resources.fetch()), 5)
    equal(sorted(resource.id for resource in resources), PATIENT_IDS)

with step("include"):
    page = client.resources("RelatedPerson").search(_tag=TAG).include("RelatedPerson", "patient").fetch_raw()
    included = [entry["resource"]["id"] for entry in page["entry"] if entry["search"]["mode"] == "include"]
    assert included and set(included) <= set(PATIENT_IDS)

with step("batch"):
    check_batch(client.execute("", data=batch_bundle(rex.id)), rex.id)

with step("transaction"):
    if ATOMIC:
        check_transaction(client.execute("", data=transaction_bundle()))
    else:
        check_outcome(outcome(failure(OperationOutcome, lambda: client.execute("", data=transaction_bundle()))), "not_supported")

with step("errors"):
    check_outcome(outcome(failure(ResourceNotFound, client.reference("Patient", "nobody").to_resource)), "resource_not_found")
    check_outcome(outcome(failure(OperationOutcome, client.resources("Patient").search(colour="brown").fetch)), "invalid_query")
    check_outcome(outcome(failure(OperationOutcome, animal(patient("wrong", gender="brown")).save)), "invalid_code")
    stale = animal({**rex.serialize(), "active": True}, connect(**{"If-Match": 'W/"1"'}))
    check_outcome(outcome(failure(MultipleResourcesFound, stale.save)), "version_conflict")

with step("delete"):
    rex.delete()
    check_outcome(outcome(failure(ResourceNotFound, client.reference("Patient", rex.id).to_resource)), "deleted")
