// Errors of the APIs: OperationOutcomes of FHIR, and problem details (RFC 9457) of AHDS.

/** Issue is one thing that is wrong with a request. */
export interface Issue {
  severity: string;
  /** at is the element, field or parameter. */
  at?: string;
  text: string;
}

/** Json is any JSON value. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type Json = any;

export class ApiError extends Error {
  constructor(
    /** status is that of HTTP, or 0 if there was no response. */
    readonly status: number,
    /** code is the server's stable code, such as slot_conflict. */
    readonly code: string,
    message: string,
    readonly issues: Issue[] = [],
    /** page is the URL that explains the code, if the server names one. */
    readonly page?: string,
    readonly conflictingSlotId?: string,
  ) {
    super(message);
  }
}

/** codeOf returns the stable code of an issue of an OperationOutcome. */
function codeOf(issue: Json): string {
  return issue?.details?.coding?.[0]?.code ?? issue?.details?.text ?? issue?.code ?? '';
}

/** sentenceOf returns what an issue says to people. */
function sentenceOf(issue: Json): string {
  const sentence = issue?.details?.coding ? issue.details.text : undefined;
  return [sentence, issue?.diagnostics].filter(Boolean).join(' ') || codeOf(issue);
}

/** issuesOf returns the issues of an OperationOutcome. */
export function issuesOf(outcome: Json): Issue[] {
  return (outcome?.issue ?? []).map((issue: Json) => ({
    severity: issue.severity ?? 'error',
    at: issue.expression?.[0],
    text: sentenceOf(issue),
  }));
}

/** errorOf returns the error of a response that is not a success. */
export function errorOf(status: number, statusText: string, body: string): ApiError {
  let parsed: Json;
  try {
    parsed = JSON.parse(body);
  } catch {
    return new ApiError(status, '', `The server answered ${status} ${statusText}.`);
  }
  if (parsed?.resourceType === 'OperationOutcome') {
    const first = parsed.issue?.[0];
    const system: string | undefined = first?.details?.coding?.[0]?.system;
    return new ApiError(status, codeOf(first), sentenceOf(first), issuesOf(parsed), system?.startsWith('http') ? system : undefined);
  }
  const issues = (parsed?.errors ?? []).map((e: Json) => ({
    severity: 'error',
    at: e.pointer ?? e.parameter ?? e.header,
    text: e.detail,
  }));
  const page = /^(https?:)?\//.test(parsed?.type ?? '') ? parsed.type : undefined;
  const message = parsed?.detail ?? parsed?.title ?? `The server answered ${status}.`;
  return new ApiError(status, parsed?.code ?? '', message, issues, page, parsed?.conflictingSlotId);
}
