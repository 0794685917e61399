// An object of a member as it is shown among those of all members: its namespace or name, an annotation with the member, and its version are spliced into
// the bytes as the member wrote them. Everything else stays as it is, uid and ownerReferences too.

import type { JsonObjectBytes } from '../../cache/core/bytes/answers.ts'
import { membersOf } from '../../cache/core/bytes/json-members.ts'
import type { ByteRange } from '../../cache/core/bytes/object-facts.ts'
import type { JsonForm } from '../../cache/core/bytes/object-form.ts'
import { type NameMode, prefixedName, prefixedNamespace } from '../../gateway/core/federation/names.ts'
import { type ByteEdit, edited, growthBefore } from './byte-edits.ts'

export const CLUSTER_ANNOTATION = 'portcullis.io/cluster'

/** How the objects of one resource of a member are shown. */
export interface Stamp {
  readonly member: string
  readonly mode: NameMode
  /** They are namespaces, whose names are those that other objects are in. */
  readonly areNamespaces: boolean
  /** The version that is shown of an object, by that which the member gave it. */
  version(own: string): string
}

/** Behind `annotations` in Go's ObjectMeta (apimachinery/pkg/apis/meta/v1/types.go). */
const BEHIND_ANNOTATIONS: ReadonlySet<string> = new Set(['ownerReferences', 'finalizers', 'managedFields'])
const ANNOTATIONS = 'annotations'

/**
 * @param form of the object
 * @throws {MalformedError}
 */
export function stampObject({ json, facts }: JsonObjectBytes, form: JsonForm, stamp: Stamp): JsonObjectBytes {
  const { metadata, version, bare } = facts
  const members = membersOf(json, metadata.start)
  const named = namedAs(facts, stamp)
  const resourceVersion = stamp.version(facts.resourceVersion)
  const edits = [
    ...editsOfMetadata(json, metadata, members, named, form, stamp.member),
    { ...version, text: JSON.stringify(resourceVersion) },
  ].sort((a, b) => a.start - b.start)
  const moved = (at: number): number => at + growthBefore(edits, at)
  const start = moved(version.start)
  return {
    json: edited(json, edits),
    facts: {
      ...facts,
      ...named,
      resourceVersion,
      metadata: { start: moved(metadata.start), end: moved(metadata.end) },
      version: { start, end: start + JSON.stringify(resourceVersion).length },
      bare: moved(bare),
    },
  }
}

export interface NamedObject {
  readonly namespace: string
  readonly name: string
}

/** What an object is called among those of all members. */
export function namedAs(
  { namespace, name }: NamedObject,
  { member, mode, areNamespaces }: Omit<Stamp, 'version'>,
): NamedObject {
  if (mode === 'merged') return { namespace, name }
  if (namespace !== '') return { namespace: prefixedNamespace(member, namespace), name }
  return { namespace, name: areNamespaces ? prefixedNamespace(member, name) : prefixedName(member, name) }
}

/**
 * All but the version.
 * @param members of the metadata
 */
export function editsOfMetadata(
  json: Buffer,
  metadata: ByteRange,
  members: ReadonlyMap<string, ByteRange>,
  named: NamedObject,
  form: JsonForm,
  member: string,
): readonly ByteEdit[] {
  return [...editsOfName(members, named), annotationEdit(json, metadata, members, form, member)]
}

function editsOfName(members: ReadonlyMap<string, ByteRange>, { namespace, name }: NamedObject): readonly ByteEdit[] {
  const edits: ByteEdit[] = []
  const ofNamespace = members.get('namespace')
  const ofName = members.get('name')
  if (ofNamespace !== undefined && namespace !== '') edits.push({ ...ofNamespace, text: JSON.stringify(namespace) })
  else if (ofName !== undefined) edits.push({ ...ofName, text: JSON.stringify(name) })
  return edits
}

function annotationEdit(
  json: Buffer,
  metadata: ByteRange,
  members: ReadonlyMap<string, ByteRange>,
  form: JsonForm,
  member: string,
): ByteEdit {
  const entry = `${JSON.stringify(CLUSTER_ANNOTATION)}:${JSON.stringify(member)}`
  const annotations = members.get(ANNOTATIONS)
  if (annotations === undefined) {
    const isBehind = (key: string): boolean => (form === 'declared' ? BEHIND_ANNOTATIONS.has(key) : key > ANNOTATIONS)
    return insertion(metadata, members, isBehind, `"${ANNOTATIONS}":{${entry}}`)
  }
  if (isNull(json, annotations)) return { ...annotations, text: `{${entry}}` }
  const known = membersOf(json, annotations.start)
  const own = known.get(CLUSTER_ANNOTATION)
  if (own !== undefined) return { ...own, text: JSON.stringify(member) }
  // Go writes maps with their keys sorted.
  return insertion(annotations, known, (key) => key > CLUSTER_ANNOTATION, entry)
}

/** A new member of a map, in front of the first that is to be behind it. */
function insertion(
  map: ByteRange,
  members: ReadonlyMap<string, ByteRange>,
  isBehind: (key: string) => boolean,
  text: string,
): ByteEdit {
  let before: ByteRange | undefined
  for (const [key, range] of members) {
    if (isBehind(key)) break
    before = range
  }
  const at = before?.end ?? map.start + 1
  if (before !== undefined) return { start: at, end: at, text: `,${text}` }
  return { start: at, end: at, text: members.size === 0 ? text : `${text},` }
}

function isNull(json: Buffer, { start, end }: ByteRange): boolean {
  return end - start === 4 && json.toString('latin1', start, end) === 'null'
}
