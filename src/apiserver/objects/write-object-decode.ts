// The body of a write -> an object of the kind: checks its type and structure, with kube-apiserver's error messages
// (endpoints/handlers/create.go and rest.go; apiextensions-apiserver customresource_handler.go, schemaCoercingDecoder).

import type { FieldError } from '../../kit/api/json/field-error.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { isRecord } from '../../kit/api/json/object-shape.ts'
import { apiVersionOf, type ResourceKind } from '../../kube/api/resource-kind.ts'
import { statusError } from '../../kube/api/status.ts'
import { TooManyValues } from '../../kube/core/objects/json-text.ts'
import { shapeMetadata } from '../../kube/core/objects/metadata-shape.ts'
import { type DecodedObject, decodeObject, YamlTooLong } from '../../kube/core/objects/strict-decode.ts'
import { shapeObject, validateShape } from '../../kube/core/objects/structural-schema.ts'
import type { FieldValidation } from '../http/query-options.ts'
import { applyFieldValidation, strictErrors } from './field-validation.ts'
import { withFields } from './object-metadata.ts'

/** A parsed body, and its text for messages. */
export interface Incoming extends DecodedObject {
  readonly text: string
}

/** An object in the structure of its kind. */
export interface Shaped {
  readonly object: JsonObject
  /** Unknown fields, for fieldValidation. */
  readonly unknown: readonly string[]
  /** Errors in metadata. */
  readonly errors: readonly FieldError[]
}

const SUMMARY_LENGTH = 30

/** @throws {StatusError} 400 if the text can't be parsed, 413 if that takes too long */
export function decodeBody(text: string, format: 'json' | 'yaml', kind: ResourceKind): Incoming {
  try {
    return { ...decodeObject(text, format), text }
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    if (takesTooLong(error)) throw tooLarge(error)
    throw unrecognized(kind, `couldn't get version/kind; json parse error: ${error.message}`, text)
  }
}

export function takesTooLong(error: SyntaxError): boolean {
  return error instanceof TooManyValues || error instanceof YamlTooLong
}

/** 413: the text was not parsed. */
export function tooLarge({ message }: SyntaxError): Error {
  return statusError('RequestEntityTooLarge', `Request entity too large: ${message}`)
}

/**
 * The object in the body of a create or update. What fieldValidation tolerates becomes a warning, or is ignored.
 * @throws {StatusError} 400
 */
export function objectOfBody(
  kind: ResourceKind,
  incoming: Incoming,
  validation: FieldValidation,
  warnings: string[],
): Shaped {
  const { value } = incoming
  if (value === null && !isBuiltIn(kind)) throw unrecognized(kind, `Object 'Kind' is missing in 'null'`, incoming.text)
  if (!isRecord(value)) {
    const type = Array.isArray(value) ? 'array' : typeof value
    const detail = `json: cannot unmarshal ${type} into Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }`
    throw unrecognized(kind, `couldn't get version/kind; json parse error: ${detail}`, incoming.text)
  }
  const typed = checkType(kind, value, incoming.text)
  const shaped = shape(kind, typed)
  if (isBuiltIn(kind)) refuseWrongTypes(kind, shaped.object)
  const problem = applyFieldValidation(strictErrors(incoming.strictErrors, shaped.unknown), validation, warnings)
  if (problem !== undefined) throw cannotBeHandled(kind, kind.kind, problem)
  return shaped
}

/**
 * Prunes unknown fields, sets defaults, and converts metadata to ObjectMeta.
 * @param refuse creates the error for values that kube-apiserver can't decode. Default: 400
 * @param stored see `shapeObject`, for custom kinds
 * @throws {StatusError}
 */
export function shape(
  kind: ResourceKind,
  object: JsonObject,
  refuse: (problem: string) => Error = (problem) => cannotBeHandled(kind, kind.kind, problem),
  stored?: JsonObject,
): Shaped {
  const { metadata, unknown, errors, malformed } = shapeMetadata(object['metadata'])
  if (malformed !== undefined) throw refuse(malformed)
  const shaped = shapeObject(kind.schema, object, isBuiltIn(kind) ? undefined : stored)
  const whole = { apiVersion: apiVersionOf(kind), kind: kind.kind, ...shaped.object, metadata }
  return {
    object: kind.group === '' && kind.plural === 'secrets' ? mergedSecret(kind, whole) : whole,
    unknown: [...unknown, ...shaped.unknown],
    errors,
  }
}

/** 400: the body can't be decoded as its kind. */
function cannotBeHandled(kind: ResourceKind, given: string, problem: string): Error {
  const message = `${given} in version ${JSON.stringify(kind.version)} cannot be handled as a ${kind.kind}: ${problem}`
  return statusError('BadRequest', message)
}

/** A value of the wrong type can't be decoded for compiled-in kinds; for others it is one validation error. */
function refuseWrongTypes(kind: ResourceKind, object: JsonObject): void {
  for (const { reason, path, message } of validateShape(kind.schema, object)) {
    const [, given] = /: "(int64|number|string|boolean|array|object|null)"$/.exec(message) ?? []
    if (reason !== 'FieldValueTypeInvalid' || given === undefined) continue
    const type = given === 'int64' ? 'number' : given === 'boolean' ? 'bool' : given
    throw cannotBeHandled(kind, kind.kind, `json: cannot unmarshal ${type} into Go struct field ${kind.kind}.${path}`)
  }
}

/** Core kinds may omit apiVersion and kind; others must have them. */
function checkType(kind: ResourceKind, object: JsonObject, text: string): JsonObject {
  const apiVersion = object['apiVersion'] ?? ''
  const name = object['kind'] ?? ''
  if (typeof apiVersion !== 'string' || typeof name !== 'string') {
    const field = typeof name === 'string' ? 'apiVersion' : 'kind'
    const type = Array.isArray(object[field]) ? 'array' : typeof object[field]
    const detail = `json: cannot unmarshal ${type} into Go struct field .${field} of type string`
    throw unrecognized(kind, `couldn't get version/kind; json parse error: ${detail}`, text)
  }
  const builtIn = isBuiltIn(kind)
  if (name === '' && !builtIn) throw unrecognized(kind, `Object 'Kind' is missing in '${text}'`, text)
  const wanted = apiVersionOf(kind)
  if (apiVersion !== wanted && !(apiVersion === '' && builtIn)) {
    throw statusError(
      'BadRequest',
      `the API version in the data (${apiVersion}) does not match the expected API version (${wanted})`,
    )
  }
  if (name !== '' && name !== kind.kind && builtIn) {
    const group = kind.group === '' ? 'core' : (kind.group.split('.')[0] ?? '')
    const types = `(${kind.version}.${name}) to (${group}.${kind.kind})`
    throw cannotBeHandled(kind, name, `converting ${types}: unknown conversion`)
  }
  return object
}

/** Kinds compiled into kube-apiserver, which kubectl treats as such; groups such as `apps` have no domain. */
export function isBuiltIn({ group }: ResourceKind): boolean {
  return !group.includes('.') || group.endsWith('.k8s.io')
}

function unrecognized(kind: ResourceKind, problem: string, text: string): Error {
  const message = `the object provided is unrecognized (must be of type ${kind.kind}): ${problem} (${summary(text)})`
  return statusError('BadRequest', message)
}

/** endpoints/handlers/rest.go, summarizeData */
function summary(text: string): string {
  if (text === '') return '<empty>'
  const bytes = Buffer.from(text)
  const cut = bytes.subarray(0, SUMMARY_LENGTH)
  const shown = text.startsWith('{') ? cut.toString() : cut.toString('hex')
  return bytes.length > SUMMARY_LENGTH ? `${shown} ...` : shown
}

// Secrets in stored form: stringData merged into data, a type, and base64 values
// (pkg/apis/core/v1/conversion.go, defaults.go).
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/

/** @throws {StatusError} 400 if a value of `data` is not base64, which Go can't decode */
function mergedSecret(kind: ResourceKind, secret: JsonObject): JsonObject {
  const { stringData } = secret
  const data: [string, unknown][] = Object.entries(isRecord(secret['data']) ? secret['data'] : {})
  for (const [, value] of data) {
    if (typeof value === 'string' && !isBase64(value)) {
      const version = JSON.stringify(kind.version)
      const problem = `illegal base64 data at input byte ${firstIllegal(value)}`
      throw statusError('BadRequest', `Secret in version ${version} cannot be handled as a Secret: ${problem}`)
    }
  }
  const merged = new Map(data)
  if (isRecord(stringData)) {
    for (const [key, text] of Object.entries(stringData)) {
      if (typeof text === 'string') merged.set(key, Buffer.from(text).toString('base64'))
    }
  }
  return withFields(secret, {
    data: merged.size > 0 ? Object.fromEntries(merged) : secret['data'],
    stringData: isRecord(stringData) ? undefined : stringData,
    type: secret['type'] === undefined || secret['type'] === '' ? 'Opaque' : secret['type'],
  })
}

function isBase64(value: string): boolean {
  // Line ends, which Go ignores, are removed first: a single expression for both would take quadratic time.
  const text = value.replaceAll(/[\r\n]/g, '')
  return text.length % 4 === 0 && BASE64.test(text)
}

function firstIllegal(value: string): number {
  const at = value.search(/[^A-Za-z0-9+/\r\n]/)
  return at < 0 ? value.length - (value.length % 4) : at
}
