// Objects in Kubernetes' protobuf format, as typed clients send Kubernetes' own kinds: client-go since
// 1.32, and with it `kubectl auth whoami`, `kubectl create secret` and leader election. These clients can't be told
// to send JSON, but they accept it in responses (apimachinery/pkg/runtime/serializer/protobuf).

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { ProtobufReader, TooManyFields } from '../../kit/core/text/protobuf-reader.ts'
import { statusError } from '../../kube/api/status.ts'
import { readEnvelope } from '../../kube/core/objects/protobuf-envelope.ts'
import { type FieldType, MESSAGES, type MessageField, type Messages, type MessageType, messageType } from './kinds.ts'

export const PROTOBUF = 'application/vnd.kubernetes.protobuf'

/**
 * The object as parsed JSON. Takes time proportional to its length.
 * @param messages of the kinds that are served. Default: those of the gateway's kinds
 * @throws {StatusError} 413 if it has too many fields, 400 if it is malformed, or of a kind that is not sent as protobuf
 */
export function decodeProtobuf(body: Buffer, messages: Messages = MESSAGES): JsonObject {
  try {
    return decodeObject(body, messages)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    if (error instanceof TooManyFields) {
      throw statusError('RequestEntityTooLarge', `Request entity too large: ${error.message}`)
    }
    throw statusError('BadRequest', `unable to decode the protobuf body: ${error.message}`)
  }
}

function decodeObject(body: Buffer, messages: Messages): JsonObject {
  const { apiVersion, kind, message } = readEnvelope(body)
  const type = messageType(messages, apiVersion, kind)
  if (type === undefined) {
    throw new SyntaxError(`no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(apiVersion)}`)
  }
  return { apiVersion, kind, ...(message !== undefined && decodeMessage(message, type)) }
}

/** Omits empty fields, as Go does. Unknown fields are skipped. */
function decodeMessage(reader: ProtobufReader, type: MessageType): Record<string, unknown> {
  const object: Record<string, unknown> = {}
  while (reader.next()) {
    const field = type.get(reader.number)
    if (field === undefined) continue
    if (field.shape === 'map') addEntry(object, field, new ProtobufReader(reader.bytes(), reader))
    else if (field.shape === 'list') addElement(object, field, reader)
    else {
      const value = decodeValue(reader, field.type)
      if (value !== undefined && (field.optional || !isZero(value))) object[field.name] = value
    }
  }
  return object
}

function addElement(object: Record<string, unknown>, { name, type }: MessageField, reader: ProtobufReader): void {
  const list = (object[name] ?? []) as unknown[]
  list.push(decodeValue(reader, type))
  object[name] = list
}

/** A map is a list of messages: key = 1, value = 2. The keys are the client's, and may include `__proto__`. */
function addEntry(object: Record<string, unknown>, { name, type }: MessageField, reader: ProtobufReader): void {
  let key = ''
  let value: unknown = ''
  while (reader.next()) {
    if (reader.number === 1) key = reader.text()
    if (reader.number === 2) value = decodeValue(reader, type)
  }
  const map = object[name] ?? {}
  Object.defineProperty(map, key, { value, enumerable: true, writable: true, configurable: true })
  object[name] = map
}

function decodeValue(reader: ProtobufReader, type: FieldType): unknown {
  if (typeof type === 'object') return decodeMessage(new ProtobufReader(reader.bytes(), reader), type)
  if (typeof type === 'function') return type(reader.bytes())
  switch (type) {
    case 'string':
      return reader.text()
    case 'bytes':
      return reader.bytes().toString('base64')
    case 'bool':
      return reader.integer() !== 0
    case 'integer':
      return reader.integer()
    case 'json':
      return decodeJson(reader.bytes())
    case 'time':
    case 'microTime':
      return decodeTime(reader.bytes(), type)
  }
}

/** An empty message is Go's zero time, which its JSON omits. */
function decodeTime(bytes: Buffer, type: 'time' | 'microTime'): string | undefined {
  if (bytes.length === 0) return undefined
  let seconds = 0
  let nanos = 0
  const reader = new ProtobufReader(bytes)
  while (reader.next()) {
    if (reader.number === 1) seconds = reader.integer()
    if (reader.number === 2) nanos = reader.integer()
  }
  const date = new Date(seconds * 1000)
  const year = date.getUTCFullYear()
  if (!(year >= 0 && year <= 9999 && nanos >= 0 && nanos < 1e9)) throw new SyntaxError('a time is invalid')
  const whole = date.toISOString().slice(0, -'.000Z'.length)
  return type === 'time' ? `${whole}Z` : `${whole}.${String(Math.trunc(nanos / 1000)).padStart(6, '0')}Z`
}

/** FieldsV1 { Raw = 1 }. */
function decodeJson(bytes: Buffer): unknown {
  const reader = new ProtobufReader(bytes)
  let text = ''
  while (reader.next()) if (reader.number === 1) text = reader.text()
  return text === '' ? undefined : JSON.parse(text)
}

function isZero(value: unknown): boolean {
  return value === '' || value === 0 || value === false
}
