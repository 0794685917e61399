// The envelope of an object in Kubernetes' protobuf format: magic bytes and runtime.Unknown, which says what kind of message is inside
// (apimachinery/pkg/runtime/serializer/protobuf, apimachinery/pkg/runtime/generated.proto).

import { ProtobufReader } from '../../../kit/core/text/protobuf-reader.ts'
import { ProtobufWriter } from '../../../kit/core/text/protobuf-writer.ts'

/** The magic bytes of such a body: `k8s` and 0. */
export const PROTOBUF_MAGIC: Buffer = Buffer.from('k8s\0')

/** Fields of runtime.Unknown: typeMeta { apiVersion = 1, kind = 2 }, raw, contentEncoding, contentType. */
export const UNKNOWN = { typeMeta: 1, raw: 2, contentEncoding: 3, contentType: 4 } as const
const TYPE_META = { apiVersion: 1, kind: 2 } as const

export interface ProtobufEnvelope {
  readonly apiVersion: string
  readonly kind: string
  /** Reads the message; undefined = it has none. */
  readonly message: ProtobufReader | undefined
  /** Where the message is in the body: [start, end). */
  readonly start: number
  readonly end: number
}

/**
 * @param mostFields as of ProtobufReader
 * @throws {SyntaxError}
 */
export function readEnvelope(body: Buffer, mostFields?: number): ProtobufEnvelope {
  if (!body.subarray(0, PROTOBUF_MAGIC.length).equals(PROTOBUF_MAGIC)) {
    throw new SyntaxError('provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]')
  }
  const unknown = new ProtobufReader(body.subarray(PROTOBUF_MAGIC.length), undefined, mostFields)
  let type = { apiVersion: '', kind: '' }
  let message: ProtobufReader | undefined
  let start = 0
  let end = 0
  while (unknown.next()) {
    if (unknown.number === UNKNOWN.typeMeta) type = readTypeMeta(new ProtobufReader(unknown.bytes(), unknown))
    if (unknown.number === UNKNOWN.contentEncoding && unknown.text() !== '') {
      throw new SyntaxError('content encodings are not supported')
    }
    if (unknown.number !== UNKNOWN.raw) continue
    const raw = unknown.bytes()
    message = new ProtobufReader(raw, unknown)
    end = PROTOBUF_MAGIC.length + unknown.end
    start = end - raw.length
  }
  return { ...type, message, start, end }
}

/** @throws {SyntaxError} */
export function readTypeMeta(typeMeta: ProtobufReader): { readonly apiVersion: string; readonly kind: string } {
  let apiVersion = ''
  let kind = ''
  while (typeMeta.next()) {
    if (typeMeta.number === TYPE_META.apiVersion) apiVersion = typeMeta.text()
    if (typeMeta.number === TYPE_META.kind) kind = typeMeta.text()
  }
  return { apiVersion, kind }
}

/** What stands in front of the length of the message: that follows, then the message, then ENVELOPE_TAIL. Go writes empty fields too. */
export function envelopeHead({ apiVersion, kind }: { readonly apiVersion: string; readonly kind: string }): Buffer {
  const typeMeta = new ProtobufWriter()
  typeMeta.element(TYPE_META.apiVersion, apiVersion)
  typeMeta.element(TYPE_META.kind, kind)
  const unknown = new ProtobufWriter()
  unknown.bytes(UNKNOWN.typeMeta, typeMeta.finish())
  return Buffer.concat([PROTOBUF_MAGIC, unknown.finish()])
}

/** contentEncoding and contentType, both empty. */
export const ENVELOPE_TAIL: Buffer = Buffer.from([UNKNOWN.contentEncoding * 8 + 2, 0, UNKNOWN.contentType * 8 + 2, 0])
