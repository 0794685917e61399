// Where the body of a write has what is called otherwise in the member (names, versions, and the annotation that is only shown), and what it is called there.
// Everything else of a body goes to the member as it came.

import { type MemberName, splitName, splitNamespace } from '../../../gateway/core/federation/names.ts'
import { UnreadableBody } from '../../../gateway/core/request/write-envelope.ts'
import { versionsOf } from '../federation-epoch.ts'
import type { NamedResource } from '../member-scope.ts'
import { parseVector } from '../vectors.ts'

export type WrittenField = 'name' | 'generateName' | 'namespace' | 'resourceVersion'

/** How the member says a field of the body. @throws {UnreadableBody} @throws {StaleVersion} */
export type ChangeField = (field: WrittenField, shown: string) => string

/** options: DeleteOptions. */
export type BodyShape = 'object' | 'options' | 'eviction'

/** A field of a map, or of a Protobuf message. */
export interface WrittenPlace {
  readonly number: number
  /** cut: the annotations, of which that of the federated cluster is taken out. */
  readonly is: WrittenField | 'cut' | WrittenMap
}

export type WrittenMap = ReadonlyMap<string, WrittenPlace>

/** ObjectMeta and Preconditions (apimachinery/pkg/apis/meta/v1/generated.proto). */
export const WRITTEN_METADATA: WrittenMap = new Map<string, WrittenPlace>([
  ['name', { number: 1, is: 'name' }],
  ['generateName', { number: 2, is: 'generateName' }],
  ['namespace', { number: 3, is: 'namespace' }],
  ['resourceVersion', { number: 6, is: 'resourceVersion' }],
  ['annotations', { number: 12, is: 'cut' }],
])
const PRECONDITIONS: WrittenMap = new Map([['resourceVersion', { number: 2, is: 'resourceVersion' }]])
const OPTIONS: WrittenMap = new Map([['preconditions', { number: 2, is: PRECONDITIONS }]])

/** Metadata is the first field of every kind; Eviction is that of api/policy/v1/generated.proto. */
export const SHAPES: Readonly<Record<BodyShape, WrittenMap>> = {
  object: new Map([['metadata', { number: 1, is: WRITTEN_METADATA }]]),
  options: OPTIONS,
  eviction: new Map([
    ['metadata', { number: 1, is: WRITTEN_METADATA }],
    ['deleteOptions', { number: 2, is: OPTIONS }],
  ]),
}

/** Texts of a body may have megabytes, and are in answers and logs. */
const MOST_SHOWN = 253

export function inWords(text: string): string {
  return text.length <= MOST_SHOWN ? text : `${text.slice(0, MOST_SHOWN)}...`
}

/** The version that is written says nothing of the member: the client has to read again. */
export class StaleVersion extends Error {}

/** The fields of a map that were there. */
export class SeenFields {
  readonly #seen = new Set<string>()

  /** @throws {UnreadableBody} if it was there before: some readers take the first value, some the last, and Go merges messages and structs */
  see(field: string): void {
    if (this.#seen.has(field)) throw new UnreadableBody(400, `the body has "${field}" twice`)
    this.#seen.add(field)
  }
}

// What the names and versions of a write are in the member.

interface ObjectName {
  /** '' = none. */
  readonly namespace: string
  /** '' = the body says it. */
  readonly name: string
}

export interface WrittenTo {
  readonly members: readonly { readonly name: string; readonly cluster: string }[]
  readonly slot: number
  /** In the path. */
  readonly shown: ObjectName
  readonly inMember: ObjectName
  readonly resource: NamedResource
}

export function changeFor({ members, slot, shown, inMember, resource }: WrittenTo): ChangeField {
  const member = members[slot]?.name ?? ''
  return (field, text) => {
    if (text === '') return text
    switch (field) {
      case 'resourceVersion':
        return versionInMember(text, members, slot)
      case 'namespace':
        // The member refuses one of what has none.
        if (!resource.isNamespaced) return text
        if (text === shown.namespace) return inMember.namespace
        throw new UnreadableBody(
          400,
          'the namespace of the provided object does not match the namespace sent on the request',
        )
      case 'name':
        if (resource.isNamespaced) return text
        if (shown.name === '') return newName(text, member, resource)
        if (text === shown.name) return inMember.name
        throw new UnreadableBody(
          400,
          `the name of the object (${inWords(text)}) does not match the name on the URL (${shown.name})`,
        )
      case 'generateName':
        // Shown objects have it as the member does.
        return resource.isNamespaced || shown.name !== '' ? text : newName(text, member, resource)
    }
  }
}

/** Which member a new object is for, that is in no namespace; undefined = none. @param name or generateName */
export function memberOfNew(name: string, resource: NamedResource): string | undefined {
  return splitNew(name, resource)?.member
}

function newName(name: string, member: string, resource: NamedResource): string {
  const split = splitNew(name, resource)
  if (split?.member === member) return split.name
  throw new UnreadableBody(400, `the name of the object (${inWords(name)}) is not one of ${member}--NAME`)
}

/** What ends in a hash is not the name of anything new. */
function splitNew(name: string, { isNamespaces }: NamedResource): MemberName | undefined {
  const split = isNamespaces ? splitNamespace(name) : splitName(name)
  return split?.hashed === true ? undefined : split
}

/** That of the member. Which others a client has seen with it does not matter: this object is of one member. */
function versionInMember(text: string, members: WrittenTo['members'], slot: number): string {
  if (text === '0') return text
  const vector = parseVector(text)
  if (vector === undefined)
    throw new UnreadableBody(
      400,
      `resourceVersion: Invalid value: ${JSON.stringify(inWords(text))}: it is not one of this cluster's`,
    )
  const own = versionsOf(vector, members)?.[slot] ?? ''
  if (own === '') throw new StaleVersion('it is from other members')
  return own
}
