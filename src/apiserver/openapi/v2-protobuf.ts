// The OpenAPI v2 document as protocol buffers: openapi.v2.Document of github.com/google/gnostic-models
// (openapiv2/OpenAPIv2.proto), the only form that kubectl reads. Features that our documents never use are left out.

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { ProtobufWriter } from '../../kit/core/text/protobuf-writer.ts'

/** How the value of one JSON key is encoded as a field of the message. */
interface Field {
  readonly number: number
  readonly write: (out: ProtobufWriter, field: number, value: unknown) => void
}

interface Message {
  readonly fields: ReadonlyMap<string, Field>
  /** Number of `vendor_extension`, for keys that begin with `x-`. */
  readonly extensions: number
}

/** @throws {TypeError} if the document has something that this encoder doesn't know */
export function encodeV2Document(document: JsonObject): Buffer {
  return encodeMessage(DOCUMENT, document)
}

function message(extensions: number, fields: Readonly<Record<string, readonly [number, Field['write']]>>): Message {
  const entries = Object.entries(fields).map(([key, [number, write]]) => [key, { number, write }] as const)
  return { extensions, fields: new Map(entries) }
}

function encodeMessage(type: Message, value: unknown): Buffer {
  const out = new ProtobufWriter()
  for (const [key, content] of Object.entries(recordOf(value))) {
    const field = type.fields.get(key)
    if (field !== undefined) field.write(out, field.number, content)
    else if (key.startsWith('x-')) out.bytes(type.extensions, named(key, anyOf(content)))
    else throw new TypeError(`no field of the message for ${key}`)
  }
  return out.finish()
}

const string: Field['write'] = (out, field, value) => out.string(field, String(value))
const bool: Field['write'] = (out, field, value) => out.bool(field, value === true)
const int64: Field['write'] = (out, field, value) => out.int64(field, Number(value))
const double: Field['write'] = (out, field, value) => out.double(field, Number(value))
const any: Field['write'] = (out, field, value) => out.bytes(field, anyOf(value))
const strings: Field['write'] = (out, field, value) => {
  for (const element of listOf(value)) out.element(field, String(element))
}
const anys: Field['write'] = (out, field, value) => {
  for (const element of listOf(value)) out.bytes(field, anyOf(element))
}

function one(encode: (value: unknown) => Buffer): Field['write'] {
  return (out, field, value) => out.bytes(field, encode(value))
}

function each(encode: (value: unknown) => Buffer): Field['write'] {
  return (out, field, value) => {
    for (const element of listOf(value)) out.bytes(field, encode(element))
  }
}

/** A map as a separate message: its entries are `{ name, value }` in `entries`. */
function entriesOf(entries: number, encode: (value: unknown) => Buffer): (value: unknown) => Buffer {
  return (value) => {
    const out = new ProtobufWriter()
    for (const [key, content] of Object.entries(recordOf(value))) out.bytes(entries, named(key, encode(content)))
    return out.finish()
  }
}

/** A message with one field, number `field`: the form of a oneof, or a wrapper. */
function wrapped(field: number, content: Buffer): Buffer {
  const out = new ProtobufWriter()
  out.bytes(field, content)
  return out.finish()
}

function named(name: string, value: Buffer): Buffer {
  const out = new ProtobufWriter()
  out.string(1, name)
  out.bytes(2, value)
  return out.finish()
}

/** Any: the value as YAML, which JSON is. */
function anyOf(value: unknown): Buffer {
  const out = new ProtobufWriter()
  out.string(2, JSON.stringify(value))
  return out.finish()
}

const encodeSchema = (value: unknown): Buffer => encodeMessage(SCHEMA, value)

const SCHEMA: Message = message(31, {
  $ref: [1, string],
  format: [2, string],
  title: [3, string],
  description: [4, string],
  default: [5, any],
  multipleOf: [6, double],
  maximum: [7, double],
  exclusiveMaximum: [8, bool],
  minimum: [9, double],
  exclusiveMinimum: [10, bool],
  maxLength: [11, int64],
  minLength: [12, int64],
  pattern: [13, string],
  maxItems: [14, int64],
  minItems: [15, int64],
  uniqueItems: [16, bool],
  maxProperties: [17, int64],
  minProperties: [18, int64],
  required: [19, strings],
  enum: [20, anys],
  additionalProperties: [21, one((value) => wrapped(1, encodeSchema(value)))],
  type: [22, one((value) => wrapped(1, Buffer.from(String(value))))],
  items: [23, one((value) => wrapped(1, encodeSchema(value)))],
  allOf: [24, each(encodeSchema)],
  properties: [25, one(entriesOf(1, encodeSchema))],
})

const BODY_PARAMETER = message(6, {
  description: [1, string],
  name: [2, string],
  in: [3, string],
  required: [4, bool],
  schema: [5, one(encodeSchema)],
})

const QUERY_PARAMETER = message(23, {
  required: [1, bool],
  in: [2, string],
  description: [3, string],
  name: [4, string],
  type: [6, string],
  format: [7, string],
})

const PATH_PARAMETER = message(22, {
  required: [1, bool],
  in: [2, string],
  description: [3, string],
  name: [4, string],
  type: [5, string],
  format: [6, string],
})

/**
 * ParametersItem { parameter = 1 }, Parameter { body_parameter = 1
 * non_body_parameter = 2 }, and which of the latter.
 */
function encodeParameter(value: unknown): Buffer {
  switch (recordOf(value)['in']) {
    case 'body':
      return wrapped(1, wrapped(1, encodeMessage(BODY_PARAMETER, value)))
    case 'query':
      return wrapped(1, wrapped(2, wrapped(3, encodeMessage(QUERY_PARAMETER, value))))
    case 'path':
      return wrapped(1, wrapped(2, wrapped(4, encodeMessage(PATH_PARAMETER, value))))
    default:
      throw new TypeError('a parameter is neither in body, query nor path')
  }
}

const RESPONSE = message(5, {
  description: [1, string],
  schema: [2, one((value) => wrapped(1, encodeSchema(value)))],
})

const OPERATION = message(13, {
  tags: [1, strings],
  summary: [2, string],
  description: [3, string],
  operationId: [5, string],
  produces: [6, strings],
  consumes: [7, strings],
  parameters: [8, each(encodeParameter)],
  responses: [9, one(entriesOf(1, (value) => wrapped(1, encodeMessage(RESPONSE, value))))],
  schemes: [10, strings],
})

const encodeOperation = (value: unknown): Buffer => encodeMessage(OPERATION, value)

const PATH_ITEM = message(10, {
  get: [2, one(encodeOperation)],
  put: [3, one(encodeOperation)],
  post: [4, one(encodeOperation)],
  delete: [5, one(encodeOperation)],
  patch: [8, one(encodeOperation)],
  parameters: [9, each(encodeParameter)],
})

const INFO = message(7, { title: [1, string], version: [2, string], description: [3, string] })

const DOCUMENT = message(16, {
  swagger: [1, string],
  info: [2, one((value) => encodeMessage(INFO, value))],
  paths: [8, one(entriesOf(2, (value) => encodeMessage(PATH_ITEM, value)))],
  definitions: [9, one(entriesOf(1, encodeSchema))],
})

function recordOf(value: unknown): JsonObject {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new TypeError('not an object')
  return value as JsonObject
}

function listOf(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw new TypeError('not a list')
  return value
}
