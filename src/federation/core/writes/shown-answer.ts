// What a member answers to a write, as the client is told it: the object, the list of those that were deleted, or a Status.

import { eachMember, elementsOf, keyAt, membersOf } from '../../../cache/core/bytes/json-members.ts'
import { malformed } from '../../../cache/core/bytes/malformed.ts'
import { type ByteRange, isKeepableVersion } from '../../../cache/core/bytes/object-facts.ts'
import { OPEN_MAP, QUOTE, skipSpace } from '../../../cache/core/bytes/skip-json.ts'
import { prefixedNamespace } from '../../../gateway/core/federation/names.ts'
import { type ByteEdit, edited } from '../byte-edits.ts'
import { editsOfMetadata, namedAs, type Stamp } from '../objects.ts'

/** How what is written is shown. Names are prefixed. */
export interface AnswerStamp extends Stamp {
  readonly isNamespaced: boolean
}

type Members = ReadonlyMap<string, ByteRange>

/** @throws {MalformedError} also if it is none of these */
export function shownAnswer(json: Buffer, stamp: AnswerStamp): Buffer {
  const root = new Map<string, ByteRange>()
  const end = eachMember(json, skipSpace(json, 0), (keyStart, keyEnd, start, valueEnd) => {
    root.set(keyAt(json, keyStart, keyEnd), { start, end: valueEnd })
  })
  if (skipSpace(json, end) < json.length) throw malformed('something follows the JSON')
  const edits = editsOf(json, root, stamp)
  return edited(
    json,
    [...edits].sort((a, b) => a.start - b.start),
  )
}

function editsOf(json: Buffer, root: Members, stamp: AnswerStamp): readonly ByteEdit[] {
  if (textOf(json, root.get('kind')) === 'Status') return statusEdits(json, mapIn(json, root, 'details'), stamp)
  const items = root.get('items')
  if (items === undefined) return objectEdits(json, root, stamp)
  const ofList = versionEdit(json, mapIn(json, root, 'metadata'), stamp)
  return [
    ...ofList,
    ...elementsOf(json, items.start).flatMap(({ start }) => objectEdits(json, membersOf(json, start), stamp)),
  ]
}

function objectEdits(json: Buffer, root: Members, stamp: AnswerStamp): readonly ByteEdit[] {
  const metadata = root.get('metadata')
  if (metadata === undefined) throw malformed('an object has no metadata')
  const members = membersOf(json, metadata.start)
  const own = { namespace: textOf(json, members.get('namespace')), name: textOf(json, members.get('name')) }
  if (stamp.isNamespaced !== (own.namespace !== '')) throw malformed('an object is in no namespace, or in one')
  const named = editsOfMetadata(json, metadata, members, namedAs(own, stamp), 'declared', stamp.member)
  return [...named, ...versionEdit(json, members, stamp)]
}

/** What was only tried has none. */
function versionEdit(json: Buffer, metadata: Members, { version }: AnswerStamp): readonly ByteEdit[] {
  const place = metadata.get('resourceVersion')
  const own = textOf(json, place)
  if (place === undefined || own === '') return []
  if (!isKeepableVersion(own)) throw malformed('an object has no decimal resourceVersion, or a very long one')
  return [{ ...place, text: JSON.stringify(version(own)) }]
}

/** Its message is in the words of the member, and so are its causes. */
function statusEdits(json: Buffer, details: Members, stamp: AnswerStamp): readonly ByteEdit[] {
  const place = details.get('name')
  const name = textOf(json, place)
  if (place === undefined || name === '') return []
  const kind = textOf(json, details.get('kind'))
  const isNamespace = textOf(json, details.get('group')) === '' && (kind === 'namespaces' || kind === 'Namespace')
  if (stamp.isNamespaced && !isNamespace) return []
  const shown = isNamespace ? prefixedNamespace(stamp.member, name) : namedAs({ namespace: '', name }, stamp).name
  return [{ ...place, text: JSON.stringify(shown) }]
}

function mapIn(json: Buffer, members: Members, key: string): Members {
  const range = members.get(key)
  return range !== undefined && json[range.start] === OPEN_MAP ? membersOf(json, range.start) : new Map()
}

/** '' = it is not there, or no text. */
function textOf(json: Buffer, range: ByteRange | undefined): string {
  if (range === undefined || json[range.start] !== QUOTE) return ''
  return JSON.parse(json.toString('utf8', range.start, range.end))
}
