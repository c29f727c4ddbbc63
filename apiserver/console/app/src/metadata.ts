// What a site says of itself in its CapabilityStatement.

import type { Client } from './api/client';
import type { Json } from './api/errors';

export interface Parameter {
  name: string;
  type: string;
}

export interface TypeInfo {
  type: string;
  parameters: Parameter[];
  /** referredBy lists searches for records that refer to one of this type, as Type and parameter. */
  referredBy: { type: string; parameter: string }[];
}

export interface Metadata {
  /** baseUrl is the address of the FHIR API in references and links. */
  baseUrl: string;
  /** zone is the time zone of the site. */
  zone: string;
  version: string;
  types: TypeInfo[];
  /** hasIssuers is true if the site publishes how to obtain tokens. */
  hasIssuers: boolean;
}

const timezone = 'http://hl7.org/fhir/StructureDefinition/timezone';

export async function loadMetadata(client: Client): Promise<Metadata> {
  return readMetadata((await client.fhir('/metadata')).json);
}

export function readMetadata(statement: Json): Metadata {
  const rest = statement.rest?.[0] ?? {};
  const common: Parameter[] = rest.searchParam ?? [];
  const types = (rest.resource ?? [])
    .filter((r: Json) => r.type !== 'AuditEvent')
    .map((r: Json): TypeInfo => ({
      type: r.type,
      parameters: [...common, ...(r.searchParam ?? [])]
        .filter((p, i, all) => all.findIndex((q) => q.name === p.name) === i)
        .map(({ name, type }) => ({ name, type }))
        .sort((a, b) => a.name.localeCompare(b.name)),
      referredBy: (r.searchRevInclude ?? [])
        .map((text: string) => text.split(':'))
        .filter(([, parameter]: string[]) => parameter && parameter !== '*')
        .map(([type, parameter]: string[]) => ({ type, parameter })),
    }));
  return {
    baseUrl: statement.implementation?.url ?? '',
    zone: statement.implementation?.extension?.find((e: Json) => e.url === timezone)?.valueCode ?? 'UTC',
    version: statement.software?.version ?? '',
    types,
    hasIssuers: rest.security?.service !== undefined,
  };
}
