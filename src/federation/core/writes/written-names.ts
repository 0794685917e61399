// What the names and versions of a write are in the member.

import { type MemberName, splitName, splitNamespace } from '../../../gateway/core/federation/names.ts'
import { UnreadableBody } from '../../../gateway/core/request/write-envelope.ts'
import { versionsOf } from '../federation-epoch.ts'
import type { NamedResource } from '../member-scope.ts'
import { parseVector } from '../vectors.ts'
import { type ChangeField, inWords, StaleVersion } from './written-fields.ts'

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
