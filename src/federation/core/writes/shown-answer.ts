// What a member answers to a write, as the client is told it: the object, the list of those that were deleted, or a Status.

import { eachElement, eachMember, keyAt } from '../../../cache/core/bytes/json-members.ts'
import { malformed } from '../../../cache/core/bytes/malformed.ts'
import { type ByteRange, isKeepableVersion } from '../../../cache/core/bytes/object-facts.ts'
import { isNull, OPEN_MAP, QUOTE, skipSpace } from '../../../cache/core/bytes/skip-json.ts'
import { prefixedNamespace } from '../../../gateway/core/federation/names.ts'
import { type ByteEdit, edited } from '../byte-edits.ts'
import { editsOfMetadata, namedAs, type Stamp } from '../objects.ts'

/** How what is written is shown. Names are prefixed. */
export interface AnswerStamp extends Stamp {
  readonly isNamespaced: boolean
  /** Objects of some custom resources have items, too. */
  readonly isList: boolean
}

type Members = ReadonlyMap<string, ByteRange>

/**
 * Fields of an answer, of its items, and of their metadata and annotations: each costs a microsecond, in one turn of a thread. In one request a
 * kube-apiserver deletes fewer objects than have so many.
 */
export const MAX_ANSWER_FIELDS = 100_000

/** @throws {MalformedError} also if it is none of these */
export function shownAnswer(json: Buffer, stamp: AnswerStamp): Buffer {
  const reader = new FieldsReader(json)
  const root = reader.members(skipSpace(json, 0))
  if (skipSpace(json, reader.end) < json.length) throw malformed('something follows the JSON')
  const edits = editsOf(reader, root, stamp)
  return edited(
    json,
    [...edits].sort((a, b) => a.start - b.start),
  )
}

/** Finds the fields of maps, not too many of all. */
class FieldsReader {
  readonly json: Buffer
  /** Index behind the last map that was read. */
  end = 0
  #fields = 0

  constructor(json: Buffer) {
    this.json = json
  }

  members(start: number): Members {
    const members = new Map<string, ByteRange>()
    this.end = eachMember(this.json, start, (keyStart, keyEnd, valueStart, end) => {
      if (++this.#fields > MAX_ANSWER_FIELDS) throw malformed(`it has more than ${MAX_ANSWER_FIELDS} fields`)
      members.set(keyAt(this.json, keyStart, keyEnd), { start: valueStart, end })
    })
    return members
  }

  /** Empty if it is not there, or no map. */
  in(members: Members, key: string): Members {
    const range = members.get(key)
    return range !== undefined && this.json[range.start] === OPEN_MAP ? this.members(range.start) : new Map()
  }

  /** '' = it is not there, or no text. */
  text(members: Members, key: string): string {
    const range = members.get(key)
    if (range === undefined || this.json[range.start] !== QUOTE) return ''
    return JSON.parse(this.json.toString('utf8', range.start, range.end))
  }
}

function editsOf(reader: FieldsReader, root: Members, stamp: AnswerStamp): readonly ByteEdit[] {
  // A kind of another group may have the same name.
  if (reader.text(root, 'kind') === 'Status' && !reader.text(root, 'apiVersion').includes('/'))
    return statusEdits(reader, reader.in(root, 'details'), stamp)
  const items = stamp.isList ? root.get('items') : undefined
  if (items === undefined) return objectEdits(reader, root, stamp)
  const edits = [...versionEdit(reader, reader.in(root, 'metadata'), stamp)]
  // As Go writes a list that was never made.
  if (isNull(reader.json, items.start)) return edits
  eachElement(reader.json, items.start, ({ start }) => {
    for (const edit of objectEdits(reader, reader.members(start), stamp)) edits.push(edit)
  })
  return edits
}

function objectEdits(reader: FieldsReader, root: Members, stamp: AnswerStamp): readonly ByteEdit[] {
  const metadata = root.get('metadata')
  if (metadata === undefined) throw malformed('an object has no metadata')
  const members = reader.members(metadata.start)
  const own = { namespace: reader.text(members, 'namespace'), name: reader.text(members, 'name') }
  if (stamp.isNamespaced !== (own.namespace !== '')) throw malformed('an object is in no namespace, or in one')
  // They are read once more where one is added.
  reader.in(members, 'annotations')
  const named = editsOfMetadata(reader.json, metadata, members, namedAs(own, stamp), 'declared', stamp.member)
  return [...named, ...versionEdit(reader, members, stamp)]
}

/** What was only tried has none. */
function versionEdit(reader: FieldsReader, metadata: Members, { version }: AnswerStamp): readonly ByteEdit[] {
  const place = metadata.get('resourceVersion')
  const own = reader.text(metadata, 'resourceVersion')
  if (place === undefined || own === '') return []
  if (!isKeepableVersion(own)) throw malformed('an object has no decimal resourceVersion, or a very long one')
  return [{ ...place, text: JSON.stringify(version(own)) }]
}

/** Its message is in the words of the member, and so are its causes. */
function statusEdits(reader: FieldsReader, details: Members, stamp: AnswerStamp): readonly ByteEdit[] {
  const place = details.get('name')
  const name = reader.text(details, 'name')
  if (place === undefined || name === '') return []
  const kind = reader.text(details, 'kind')
  const isNamespace = reader.text(details, 'group') === '' && (kind === 'namespaces' || kind === 'Namespace')
  if (stamp.isNamespaced && !isNamespace) return []
  const shown = isNamespace ? prefixedNamespace(stamp.member, name) : namedAs({ namespace: '', name }, stamp).name
  return [{ ...place, text: JSON.stringify(shown) }]
}
