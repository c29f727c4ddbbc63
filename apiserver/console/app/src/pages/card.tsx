// The readable card of a record.

import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { Json } from '../api/errors';
import { born } from '../fhir/age';
import { address, animalOf, concept, contacts, humanName, identifierName, relation } from '../fhir/display';
import { useSite } from '../site';
import { dateTime } from '../dates';
import { useLoad } from '../ui/load';
import { Link } from '../router';
import { titleOf } from '../fhir/display';
import { Copyable } from '../ui/copy';

export function Card({ resource }: { resource: Json }) {
  const animal = animalOf(resource);
  const { metadata } = useSite();
  const names: Json[] = Array.isArray(resource.name) ? resource.name : [];
  const addresses: Json[] = [resource.address ?? []].flat().filter((a: Json) => typeof a === 'object');
  return (
    <article class="card" aria-label="Summary">
      <Photo resource={resource} />
      <dl>
        <Row name="Name">{names.length > 0 ? names.map(humanName).join('; ') : typeof resource.name === 'string' ? resource.name : ''}</Row>
        <Row name="Species">{animal.species}</Row>
        <Row name="Breed">{animal.breed}</Row>
        <Row name="Gender">{[resource.gender, animal.genderStatus].filter(Boolean).join(', ')}</Row>
        <Row name="Born">{resource.birthDate && born(resource.birthDate, new Date(), resource.deceasedDateTime)}</Row>
        <Row name="Died">{resource.deceasedDateTime ? dateTime(resource.deceasedDateTime, metadata.zone) : resource.deceasedBoolean ? 'yes' : ''}</Row>
        {resource.resourceType === 'Patient' && <Owners id={resource.id} />}
        <Row name="Relation">{relation(resource)}</Row>
        <Row name="Kind">{[resource.type ?? []].flat().map((t: Json) => (typeof t === 'string' ? t : concept(t))).filter(Boolean).join(', ')}</Row>
        <Row name="Code">{[resource.code ?? []].flat().map(concept).filter(Boolean).join(', ')}</Row>
        <Row name="Status">{resource.status ?? (resource.active === undefined ? '' : resource.active ? 'active' : 'not active')}</Row>
        <Row name="Contact">{contacts(resource)}</Row>
        <Row name="Address">{addresses.map(address).join('; ')}</Row>
        {(resource.identifier ?? []).map((i: Json) => (
          <Row name={identifierName(i)}>
            {i.value && <Copyable value={i.value} />} <span class="quiet">{i.system}</span>
          </Row>
        ))}
        <Row name="Id">
          <Copyable value={resource.id} />
        </Row>
      </dl>
      <Narrative html={resource.text?.div} />
    </article>
  );
}

function Row({ name, children }: { name: string; children?: ComponentChildren }) {
  if (!children) return null;
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}

/** Owners lists the related persons of a patient. */
function Owners({ id }: { id: string }) {
  const { client } = useSite();
  const owners = useLoad(async () => ((await client.fhir(`/RelatedPerson?patient=Patient/${id}&_count=10`)).json.entry ?? []).map((e: Json) => e.resource), [client, id]);
  if (!owners.data?.length) return null;
  return (
    <Row name="Owner">
      <ul class="plain">
        {owners.data.map((person: Json) => (
          <li>
            <Link to={`/record/RelatedPerson/${person.id}`}>{titleOf(person)}</Link> <span class="quiet">{relation(person)}</span>
          </li>
        ))}
      </ul>
    </Row>
  );
}

/** images are the types of photos that are shown. SVG may have scripts. */
const images = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];

/** Photo shows a photo whose data are in the record. A photo elsewhere is not loaded. */
function Photo({ resource }: { resource: Json }) {
  const photo = [resource.photo ?? []].flat()[0];
  if (!photo) return null;
  if (photo.data && images.includes(photo.contentType)) return <img class="photo" src={`data:${photo.contentType};base64,${photo.data}`} alt={photo.title ?? 'Photo'} />;
  return photo.url ? <p class="quiet">There is a photo elsewhere, which is not loaded: <code>{photo.url}</code></p> : null;
}

/** withoutStyles removes style attributes, which the page's policy refuses even while the text is parsed. */
function withoutStyles(html: string): string {
  return html.replace(/<[^>]+>/g, (tag) => tag.replace(/\sstyle\s*=\s*("[^"]*"|'[^']*')/gi, ''));
}

/** Narrative shows the text of a record without scripts, styles, images and links. */
function Narrative({ html }: { html: string | undefined }) {
  const ref = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!html) return;
    void import('dompurify').then(({ default: purify }) => {
      if (!ref.current) return;
      const clean = purify.sanitize(withoutStyles(html), {
        USE_PROFILES: { html: true },
        FORBID_TAGS: ['img', 'picture', 'source', 'video', 'audio', 'style', 'form', 'input', 'button', 'a', 'link', 'svg'],
        FORBID_ATTR: ['style', 'class', 'id', 'name', 'background', 'href', 'src', 'srcset'],
        RETURN_DOM_FRAGMENT: true,
      });
      ref.current.replaceChildren(clean);
    });
  }, [html]);
  if (!html) return null;
  return (
    <details>
      <summary>Narrative</summary>
      <div class="narrative" ref={ref} />
    </details>
  );
}
