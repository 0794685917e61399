// The metadata of custom resources in protobuf. There is none of the objects themselves, but metadata clients, such as the garbage collector, ask for that
// of all kinds.

import { isRecord } from '../../../kit/api/json/object-shape.ts'
import { ProtobufWriter } from '../../../kit/core/text/protobuf-writer.ts'
import { compareKeys } from '../keys/object-key.ts'
import { elementsOf, membersOf } from './json-members.ts'
import { malformed } from './malformed.ts'
import type { ByteRange } from './object-facts.ts'

type Members = ReadonlyMap<string, ByteRange>
/** Writes one field, if the map has it; many are written empty if not. */
type WriteField = (writer: ProtobufWriter, number: number, source: Source, value: ByteRange | undefined) => void

/** An int64 has no more digits. */
const WHOLE = /^-?[0-9]{1,19}$/

interface Source {
  readonly json: Buffer
}

/** In the order of the numbers, as Go writes them (apimachinery/pkg/apis/meta/v1/generated.proto). */
type FieldRow = readonly [number: number, key: string, write: WriteField]

const OWNER_REFERENCE: readonly FieldRow[] = [
  [1, 'kind', writeText],
  [3, 'name', writeText],
  [4, 'uid', writeText],
  [5, 'apiVersion', writeText],
  [6, 'controller', writeFlag],
  [7, 'blockOwnerDeletion', writeFlag],
]

const MANAGED_FIELDS_ENTRY: readonly FieldRow[] = [
  [1, 'manager', writeText],
  [2, 'operation', writeText],
  [3, 'apiVersion', writeText],
  [4, 'time', writeOptionalTime],
  [6, 'fieldsType', writeText],
  [7, 'fieldsV1', writeRaw],
  [8, 'subresource', writeText],
]

const OBJECT_META: readonly FieldRow[] = [
  [1, 'name', writeText],
  [2, 'generateName', writeText],
  [3, 'namespace', writeText],
  [4, 'selfLink', writeText],
  [5, 'uid', writeText],
  [6, 'resourceVersion', writeText],
  [7, 'generation', writeNumber],
  [8, 'creationTimestamp', writeTime],
  [9, 'deletionTimestamp', writeOptionalTime],
  [10, 'deletionGracePeriodSeconds', writeOptionalNumber],
  [11, 'labels', writeTexts],
  [12, 'annotations', writeTexts],
  [13, 'ownerReferences', (writer, number, source, value) => writeList(writer, number, source, value, OWNER_REFERENCE)],
  [14, 'finalizers', writeElements],
  [
    17,
    'managedFields',
    (writer, number, source, value) => writeList(writer, number, source, value, MANAGED_FIELDS_ENTRY),
  ],
]

/**
 * As an API server writes it: the content of the field `metadata`.
 * @param range of the metadata in the object
 * @throws {MalformedError}
 */
export function encodeMetadata(json: Buffer, range: ByteRange): Buffer {
  return encode({ json }, membersOf(json, range.start), OBJECT_META)
}

function encode(source: Source, members: Members, rows: readonly FieldRow[]): Buffer {
  const writer = new ProtobufWriter()
  for (const [number, key, write] of rows) write(writer, number, source, members.get(key))
  return writer.finish()
}

/** null is as if it was absent. */
function parsed({ json }: Source, value: ByteRange | undefined): unknown {
  return value === undefined ? undefined : (JSON.parse(json.toString('utf8', value.start, value.end)) ?? undefined)
}

function textIn(value: unknown): string {
  if (typeof value !== 'string') throw malformed('a field of the metadata is not a string')
  return value
}

function writeText(writer: ProtobufWriter, number: number, source: Source, value: ByteRange | undefined): void {
  writer.element(number, textIn(parsed(source, value) ?? ''))
}

function writeFlag(writer: ProtobufWriter, number: number, source: Source, value: ByteRange | undefined): void {
  const flag = parsed(source, value)
  if (flag !== undefined) writer.number(number, flag === true ? 1 : 0)
}

function writeNumber(writer: ProtobufWriter, number: number, source: Source, value: ByteRange | undefined): void {
  const text = value === undefined ? '0' : source.json.toString('latin1', value.start, value.end)
  if (text === 'null') writer.number(number, 0)
  else if (WHOLE.test(text)) writer.number(number, BigInt(text))
  else throw malformed('a field of the metadata is not a whole number')
}

function writeOptionalNumber(
  writer: ProtobufWriter,
  number: number,
  source: Source,
  value: ByteRange | undefined,
): void {
  if (parsed(source, value) !== undefined) writeNumber(writer, number, source, value)
}

/** Seconds, and nanoseconds, which JSON does not have. */
function writeTime(writer: ProtobufWriter, number: number, source: Source, value: ByteRange | undefined): void {
  const text = parsed(source, value)
  const time = new ProtobufWriter()
  if (text !== undefined) {
    const seconds = Date.parse(textIn(text)) / 1000
    if (!Number.isSafeInteger(seconds)) throw malformed('a time of the metadata is not one')
    time.number(1, seconds)
    time.number(2, 0)
  }
  writer.bytes(number, time.finish())
}

function writeOptionalTime(writer: ProtobufWriter, number: number, source: Source, value: ByteRange | undefined): void {
  if (parsed(source, value) !== undefined) writeTime(writer, number, source, value)
}

/** FieldsV1 { Raw = 1 }: the JSON as it stands. */
function writeRaw(writer: ProtobufWriter, number: number, source: Source, value: ByteRange | undefined): void {
  if (value === undefined || parsed(source, value) === undefined) return
  const raw = new ProtobufWriter()
  raw.bytes(1, source.json.subarray(value.start, value.end))
  writer.bytes(number, raw.finish())
}

/** A map of texts: sorted, each a message of key = 1 and value = 2. */
function writeTexts(writer: ProtobufWriter, number: number, source: Source, value: ByteRange | undefined): void {
  const map = parsed(source, value) ?? {}
  if (!isRecord(map)) throw malformed('labels or annotations are not a map')
  for (const [key, text] of Object.entries(map).sort(([a], [b]) => compareKeys(a, b))) {
    const entry = new ProtobufWriter()
    entry.element(1, key)
    entry.element(2, textIn(text))
    writer.bytes(number, entry.finish())
  }
}

function writeElements(writer: ProtobufWriter, number: number, source: Source, value: ByteRange | undefined): void {
  if (value === undefined || parsed(source, value) === undefined) return
  for (const item of elementsOf(source.json, value.start)) writer.element(number, textIn(parsed(source, item)))
}

function writeList(
  writer: ProtobufWriter,
  number: number,
  source: Source,
  value: ByteRange | undefined,
  rows: readonly FieldRow[],
): void {
  if (value === undefined || parsed(source, value) === undefined) return
  for (const item of elementsOf(source.json, value.start)) {
    writer.bytes(number, encode(source, membersOf(source.json, item.start), rows))
  }
}
