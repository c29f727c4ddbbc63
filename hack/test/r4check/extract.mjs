// Evaluates FHIRPath over FHIR R4 resources by the engine of fhirpath.js. Each line
// of the input is [expressions, resource]; for each there is a line of the values of
// each expression.
import { createInterface } from 'node:readline';
import fhirpath from 'fhirpath';
import r4 from 'fhirpath/fhir-context/r4/index.js';

const compiled = new Map();
const evaluate = (expression, resource) => {
  if (!compiled.has(expression)) {
    compiled.set(expression, fhirpath.compile(expression, r4));
  }
  return compiled.get(expression)(resource);
};

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const [expressions, text] = JSON.parse(line);
  const resource = JSON.parse(text);
  console.log(JSON.stringify(expressions.map((expression) => evaluate(expression, resource))));
}
