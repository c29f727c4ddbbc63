// Evaluates HL7's expressions of search parameters by the engine of fhirpath.js. The
// first line of the input has the expressions, by resource type and parameter; every
// other line is a resource. For each there is a line with what each parameter of its
// type finds: pairs of a FHIR type and a value.
import { createInterface } from 'node:readline';
import { doubleMetaphone } from 'double-metaphone';
import fhirpath from 'fhirpath';
import r4 from 'fhirpath/fhir-context/r4/index.js';

const programs = new Map();

const compile = (expressions) => {
  for (const [type, byParameter] of Object.entries(expressions)) {
    programs.set(type, Object.entries(byParameter).map(([parameter, expression]) =>
      [parameter, fhirpath.compile(expression, r4, { resolveInternalTypes: false })]));
  }
};

// texts are the texts of a string, or of the parts of a name.
const texts = (value) => typeof value === 'string' ? [value]
  : [value.text, value.family, ...(value.given ?? []), ...(value.prefix ?? []), ...(value.suffix ?? [])];

// sounds are the codes of the words of a text.
const sounds = (text) => (text ?? '').normalize('NFKD').replace(/\p{Mn}/gu, '').toUpperCase()
  .split(/[^\p{L}'’]+/u)
  .map((word) => word.replace(/[^A-Z]/g, ''))
  .filter((word) => word !== '')
  .flatMap((word) => doubleMetaphone(word))
  .map((code) => code.slice(0, 4))
  .filter((code) => code !== '');

const found = (parameter, program, resource) => {
  const nodes = program(resource);
  const types = fhirpath.types(nodes);
  const values = JSON.parse(JSON.stringify(nodes));
  const pairs = values.map((value, i) => [types[i].replace(/^\w+\./, ''), value]).filter(([, value]) => value !== null);
  if (parameter !== 'phonetic') return pairs;
  return pairs.map(([, value]) => ['sounds', texts(value).flatMap(sounds)]);
};

let ready = false;
for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  if (!ready) {
    compile(JSON.parse(line));
    ready = true;
    continue;
  }
  const resource = JSON.parse(JSON.parse(line));
  const values = programs.get(resource.resourceType)
    .map(([parameter, program]) => [parameter, found(parameter, program, resource)]);
  console.log(JSON.stringify(Object.fromEntries(values)));
}
