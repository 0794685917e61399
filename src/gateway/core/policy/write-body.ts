// Whether the body of a write may change certain fields, so that upstream must be asked. A wrong guess must only ever cost an extra call.

import { isUtf8 } from 'node:buffer'
import { isRecord, textOf } from '../../../kit/api/json/object-shape.ts'
import { ProtobufReader } from '../../../kit/core/text/protobuf-reader.ts'
import { parseJson } from '../../../kube/core/objects/json-text.ts'
import { openEnvelope, UnreadableBody } from '../request/write-envelope.ts'
import type { EndingWrite } from './ending-writes.ts'

const PROTOBUF = 'application/vnd.kubernetes.protobuf'
const MERGE_PATCH = 'application/merge-patch+json'
const STRATEGIC_PATCH = 'application/strategic-merge-patch+json'
const JSON_PATCH = 'application/json-patch+json'

/** Maximum size of a JSON patch that is searched for copies and moves; a larger one counts as having them. */
const MAX_READ_PATCH = 256 * 1024

/**
 * Whether a write with this body may change a relevant field; otherwise no check is needed, and hardly any write needs one. One of the
 * words must occur in the body, or something that can produce it: a JSON or YAML escape, a YAML tag (`!!binary`), a JSON patch operation
 * that copies it from elsewhere. In unknown formats anything may.
 */
export function mayChange(write: Omit<EndingWrite, 'outcome'>, contentType: string, body: Buffer): boolean {
  const { words, byAbsence, protobuf } = write
  if (words.some((word) => body.includes(word))) return true
  switch (mediaTypeOf(contentType)) {
    // To null a field, a merge patch must name it.
    case MERGE_PATCH:
      return body.includes('\\')
    // `$patch: replace` removes everything it does not name.
    case STRATEGIC_PATCH:
      return body.includes('\\') || (byAbsence && body.includes('$'))
    case JSON_PATCH:
      return byAbsence || body.includes('\\') || body.includes('"copy"') || body.includes('"move"')
    case PROTOBUF:
      return byAbsence || (protobuf !== undefined && hasField(body, protobuf))
    case '':
    case 'application/json':
      return byAbsence || body.includes('\\')
    case 'application/yaml':
    case 'application/apply-patch+yaml':
      // Go's library reads UTF-16, too.
      return byAbsence || body.includes('\\') || body.includes('!') || !isUtf8(body)
    default:
      return true
  }
}

/**
 * Whether a JSON patch copies or moves something to or from one of these places: its effect then depends on the object at the time upstream
 * applies it, and an earlier dry run says nothing about that.
 */
export function dependsOnMoment(places: readonly string[], contentType: string, body: Buffer): boolean {
  if (mediaTypeOf(contentType) !== JSON_PATCH) return false
  if (!body.includes('"copy"') && !body.includes('"move"') && !body.includes('\\')) return false
  if (body.length > MAX_READ_PATCH) return true
  const operations = patchOperations(body)
  if (operations === undefined) return true
  const guarded = places.map(segmentsOf)
  return operations.some((operation) => {
    if (!isRecord(operation)) return true
    const { op, path, from } = operation
    if (op !== 'copy' && op !== 'move') return false
    return [path, ...(op === 'move' ? [from] : [])].some((pointer) => {
      const segments = segmentsOf(textOf(pointer))
      return guarded.some((place) => isWithin(place, segments) || isWithin(segments, place))
    })
  })
}

/** undefined = Go might read it differently: not a list, or a field given twice. */
function patchOperations(body: Buffer): readonly unknown[] | undefined {
  try {
    const { value, duplicates } = parseJson(body.toString('utf8'))
    return Array.isArray(value) && duplicates.length === 0 ? value : undefined
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

/** RFC 6901, as gopkg.in/evanphx/json-patch.v4 reads it: what precedes the first slash is dropped. */
function segmentsOf(pointer: string): readonly string[] {
  const slash = pointer.indexOf('/')
  const segments = slash < 0 ? [] : pointer.slice(slash + 1).split('/')
  while (segments.at(-1) === '') segments.pop()
  return segments.map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'))
}

/** Whether `inner` equals `outer` or lies inside it. */
function isWithin(inner: readonly string[], outer: readonly string[]): boolean {
  return outer.length <= inner.length && outer.every((segment, at) => segment === inner[at])
}

/** Whether the message has the field, or can't be parsed. @param path field numbers, outermost first */
function hasField(body: Buffer, path: readonly number[]): boolean {
  try {
    return containsField(new ProtobufReader(openEnvelope(body).raw), path)
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof UnreadableBody) return true
    throw error
  }
}

function containsField(message: ProtobufReader, [number, ...inner]: readonly number[]): boolean {
  while (message.next()) {
    if (message.number !== number) continue
    if (inner.length === 0 || containsField(new ProtobufReader(message.bytes(), message), inner)) return true
  }
  return false
}

function mediaTypeOf(contentType: string): string {
  return contentType.split(';', 1)[0]?.trim().toLowerCase() ?? ''
}
