// The body of a write in JSON, as the member gets it: objects, options, and patches of objects.

import { eachElement, eachMember, keyAt } from '../../../cache/core/bytes/json-members.ts'
import { malformed } from '../../../cache/core/bytes/malformed.ts'
import type { ByteRange } from '../../../cache/core/bytes/object-facts.ts'
import { OPEN_MAP, QUOTE, skipSpace } from '../../../cache/core/bytes/skip-json.ts'
import { UnreadableBody } from '../../../gateway/core/request/write-envelope.ts'
import { MAX_PATCH_OPERATIONS } from '../../../kube/core/objects/patch.ts'
import { type ByteEdit, cutItems, edited } from '../byte-edits.ts'
import { CLUSTER_ANNOTATION } from '../objects.ts'
import {
  type ChangeField,
  inWords,
  SeenFields,
  WRITTEN_METADATA,
  type WrittenMap,
  type WrittenPlace,
} from './written-fields.ts'

/**
 * An object, or a merge patch of one: what it says of metadata is said in the same way.
 * @throws {MalformedError}
 * @throws {UnreadableBody} also if a field is there twice
 */
export function writtenJson(json: Buffer, places: WrittenMap, change: ChangeField): Buffer {
  const edits: ByteEdit[] = []
  const start = skipSpace(json, 0)
  const end = editMap(json, start, places, change, edits)
  atEnd(json, end)
  return edited(json, edits)
}

/** A JSON patch (RFC 6902). @throws as writtenJson */
export function writtenJsonPatch(json: Buffer, change: ChangeField): Buffer {
  const edits: ByteEdit[] = []
  const start = skipSpace(json, 0)
  const operations: ByteRange[] = []
  const cut = new Set<number>()
  const end = eachElement(json, start, (range) => {
    if (operations.length === MAX_PATCH_OPERATIONS) throw tooManyOperations()
    if (editOperation(json, operationAt(json, range.start), change, edits) === 'cut') cut.add(operations.length)
    operations.push(range)
  })
  atEnd(json, end)
  const cuts = cutItems(operations, (index) => cut.has(index))
  return edited(
    json,
    [...edits, ...cuts].sort((a, b) => a.start - b.start),
  )
}

/** As kube-apiserver says it, which counts them. */
function tooManyOperations(): UnreadableBody {
  const limit = `The allowed maximum operations in a JSON patch is ${MAX_PATCH_OPERATIONS}, got more`
  return new UnreadableBody(413, `Request entity too large: ${limit}`)
}

function atEnd(json: Buffer, at: number): void {
  if (skipSpace(json, at) < json.length) throw malformed('something follows the JSON')
}

/** @returns the index behind the map */
function editMap(json: Buffer, start: number, places: WrittenMap, change: ChangeField, edits: ByteEdit[]): number {
  const seen = new SeenFields()
  return eachMember(json, start, (keyStart, keyEnd, valueStart, valueEnd) => {
    const key = keyAt(json, keyStart, keyEnd)
    const place = places.get(key)
    if (place === undefined) return
    seen.see(key)
    editValue(json, { start: valueStart, end: valueEnd }, place, change, edits)
  })
}

/** What is of another type, the member refuses; null says that the field is not there, or goes. */
function editValue(json: Buffer, value: ByteRange, { is }: WrittenPlace, change: ChangeField, edits: ByteEdit[]): void {
  if (typeof is === 'string' && is !== 'cut') {
    if (json[value.start] !== QUOTE) return
    const shown = textAt(json, value)
    const written = change(is, shown)
    if (written !== shown) edits.push({ ...value, text: JSON.stringify(written) })
  } else if (json[value.start] === OPEN_MAP) {
    if (is === 'cut') edits.push(...annotationCut(json, value.start))
    else editMap(json, value.start, is, change, edits)
  }
}

/** With the comma in front of it, or behind it if it is the first. */
function annotationCut(json: Buffer, start: number): readonly ByteEdit[] {
  const seen = new SeenFields()
  const cuts: ByteEdit[] = []
  /** The end of the entry in front. */
  let before = -1
  let firstIsCut = false
  eachMember(json, start, (keyStart, keyEnd, _, valueEnd) => {
    if (keyAt(json, keyStart, keyEnd) === CLUSTER_ANNOTATION) {
      seen.see(CLUSTER_ANNOTATION)
      firstIsCut = before < 0
      cuts.push({ start: firstIsCut ? keyStart : before, end: valueEnd, text: '' })
    } else if (firstIsCut) {
      firstIsCut = false
      cuts.push({ start: before, end: keyStart, text: '' })
    }
    before = valueEnd
  })
  return cuts
}

function textAt(json: Buffer, { start, end }: ByteRange): string {
  return JSON.parse(json.toString('utf8', start, end))
}

interface PatchOperation {
  readonly op: string
  readonly path: readonly string[]
  /** undefined = it has none. */
  readonly from: readonly string[] | undefined
  readonly value: ByteRange | undefined
}

const OPERATION_KEYS: ReadonlySet<string> = new Set(['op', 'path', 'from', 'value'])

function operationAt(json: Buffer, start: number): PatchOperation {
  if (json[start] !== OPEN_MAP) throw notAPatch('an operation is not a map')
  const found = new Map<string, ByteRange>()
  const seen = new SeenFields()
  eachMember(json, start, (keyStart, keyEnd, valueStart, valueEnd) => {
    const key = keyAt(json, keyStart, keyEnd)
    if (!OPERATION_KEYS.has(key)) return
    seen.see(key)
    found.set(key, { start: valueStart, end: valueEnd })
  })
  const textOf = (key: string): string | undefined => {
    const range = found.get(key)
    if (range === undefined) return undefined
    if (json[range.start] !== QUOTE) throw notAPatch(`"${key}" is not a text`)
    return textAt(json, range)
  }
  const from = textOf('from')
  return {
    op: textOf('op') ?? '',
    path: pointerOf(textOf('path')),
    from: from === undefined ? undefined : pointerOf(from),
    value: found.get('value'),
  }
}

/** Deep enough to tell what is changed: `/metadata/annotations/KEY`, and that there is more. */
const STEPS = 4

/**
 * The first steps of a JSON Pointer (RFC 6901) to something in the object. What is before the first slash, and empty steps, one library skips and another does
 * not.
 */
function pointerOf(pointer: string | undefined): readonly string[] {
  const [before, ...steps] = pointer?.split('/', STEPS + 1) ?? []
  if (before !== '' || steps.length === 0 || pointer?.includes('//') === true || pointer?.endsWith('/') === true)
    throw notAPatch('a path of it is not that of a field')
  return steps.map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
}

function notAPatch(why: string): UnreadableBody {
  return new UnreadableBody(400, `the JSON patch cannot be read: ${why}`)
}

const METADATA = 'metadata'
const ANNOTATIONS = 'annotations'

/** @returns cut: it changes only what is shown */
function editOperation(
  json: Buffer,
  { op, path, from, value }: PatchOperation,
  change: ChangeField,
  edits: ByteEdit[],
): 'cut' | 'kept' {
  if (op === 'copy' || op === 'move') {
    if (differs(path) || isPath(path, [METADATA, ANNOTATIONS]) || (from !== undefined && differs(from)))
      throw notAPatch(`it copies or moves what has another value in the member: ${inWords(`/${path.join('/')}`)}`)
    return 'kept'
  }
  if (isPath(path, SHOWN_ANNOTATION)) {
    if (op === 'test') throw notAPatch(`annotation ${CLUSTER_ANNOTATION} is only shown`)
    return 'cut'
  }
  const [first, second, ...inner] = path
  if (value === undefined || first !== METADATA || inner.length > 0) return 'kept'
  if (second === undefined) {
    if (json[value.start] === OPEN_MAP) editMap(json, value.start, WRITTEN_METADATA, change, edits)
    return 'kept'
  }
  const place = WRITTEN_METADATA.get(second)
  if (place !== undefined) editValue(json, value, place, change, edits)
  return 'kept'
}

const SHOWN_ANNOTATION: readonly string[] = [METADATA, ANNOTATIONS, CLUSTER_ANNOTATION]

/** Whether what is there in the member is another value than the one that is shown. */
function differs(path: readonly string[]): boolean {
  const [first, second] = path
  if (first !== METADATA) return false
  if (second === undefined || isPath(path, SHOWN_ANNOTATION)) return true
  return second !== ANNOTATIONS && WRITTEN_METADATA.has(second)
}

function isPath(path: readonly string[], other: readonly string[]): boolean {
  return path.length === other.length && other.every((step, at) => step === path[at])
}
