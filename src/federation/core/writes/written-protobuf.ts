// The body of a write in Protobuf, as the member gets it. Fields that are not looked at keep their bytes and their order, and so do those of newer versions.

import { readEntry } from '../../../cache/core/bytes/protobuf-facts.ts'
import { ProtobufReader } from '../../../kit/core/text/protobuf-reader.ts'
import { lengthPrefix } from '../../../kit/core/text/protobuf-writer.ts'
import { PROTOBUF_MAGIC, readEnvelope, UNKNOWN } from '../../../kube/core/objects/protobuf-envelope.ts'
import { CLUSTER_ANNOTATION } from '../objects.ts'
import { type ChangeField, SeenFields, type WrittenMap, type WrittenPlace } from './written-fields.ts'

/**
 * @throws {SyntaxError}
 * @throws {UnreadableBody} if a field is there twice: Go would merge two messages
 */
export function writtenProtobuf(body: Buffer, places: WrittenMap, change: ChangeField): Buffer {
  // For what it refuses of the envelope.
  readEnvelope(body)
  const unknown = body.subarray(PROTOBUF_MAGIC.length)
  const envelope: WrittenMap = new Map([['raw', { number: UNKNOWN.raw, is: places }]])
  return Buffer.concat([PROTOBUF_MAGIC, writtenMessage(new ProtobufReader(unknown), unknown, envelope, change)])
}

/** @param bytes of the reader's message */
function writtenMessage(reader: ProtobufReader, bytes: Buffer, places: WrittenMap, change: ChangeField): Buffer {
  const byNumber = new Map(Array.from(places, ([name, place]) => [place.number, { name, place }]))
  const seen = new SeenFields()
  const pieces: Buffer[] = []
  /** What is kept from here on is not in the pieces yet. */
  let from = 0
  while (reader.next()) {
    const found = byNumber.get(reader.number)
    if (found === undefined) continue
    const { name, place } = found
    // A map is a list of its entries.
    if (place.is !== 'cut') seen.see(name)
    const written = writtenField(reader, place, change, seen)
    if (written === undefined) continue
    pieces.push(bytes.subarray(from, reader.start), ...written)
    from = reader.end
  }
  pieces.push(bytes.subarray(from))
  return Buffer.concat(pieces)
}

/** @returns undefined = it stays */
function writtenField(
  reader: ProtobufReader,
  { number, is }: WrittenPlace,
  change: ChangeField,
  seen: SeenFields,
): readonly Buffer[] | undefined {
  if (is === 'cut') {
    const [key] = readEntry(reader)
    if (key !== CLUSTER_ANNOTATION) return undefined
    seen.see(key)
    return []
  }
  if (typeof is === 'string') {
    const shown = reader.text()
    const written = change(is, shown)
    if (written === shown) return undefined
    const text = Buffer.from(written)
    return [lengthPrefix(number, text.length), text]
  }
  const content = reader.bytes()
  const message = writtenMessage(new ProtobufReader(content, reader), content, is, change)
  return [lengthPrefix(number, message.length), message]
}
