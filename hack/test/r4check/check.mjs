// Judges FHIR R4 resources by the validator of @medplum/core, over HL7's own
// StructureDefinitions. The first line of the input names the file that has these;
// every other line is a resource. For each there is a line of what is wrong with it.
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { indexStructureDefinitionBundle, validateResource } from '@medplum/core';

const issuesOf = (text) => {
  try {
    validateResource(JSON.parse(text));
    return [];
  } catch (err) {
    const issues = err.outcome?.issue ?? [{ severity: 'error', details: { text: String(err) } }];
    return issues
      .filter((issue) => issue.severity === 'error')
      .map((issue) => `${issue.details?.text} ${issue.expression?.join(',') ?? ''}`);
  }
};

let ready = false;
for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  if (!ready) {
    indexStructureDefinitionBundle(JSON.parse(readFileSync(line, 'utf8')));
    ready = true;
    continue;
  }
  console.log(JSON.stringify(issuesOf(JSON.parse(line))));
}
