// DEMO ONLY. Requests in Kubernetes' protobuf, which kubectl 1.33 and later send for `create` and `auth can-i`; answers are
// JSON. Field numbers are those of k8s.io/api generated.proto; fields that the demo does not care for are skipped.

import { badRequest } from './api-error.ts'
import type { Json } from './json.ts'

/** apimachinery/pkg/runtime/serializer/protobuf: four bytes, then a runtime.Unknown that holds the object. */
export function decodeProtobuf(body: Buffer): Json {
  if (!body.subarray(0, 4).equals(MAGIC)) throw badRequest('the body of the request is not Kubernetes protobuf')
  let kind = ''
  let apiVersion = ''
  let raw: Buffer = Buffer.alloc(0)
  for (const { number, bytes } of fields(body.subarray(4))) {
    if (number === 1) {
      const type = decodeMessage('TypeMeta', bytes)
      apiVersion = String(type['apiVersion'] ?? '')
      kind = String(type['kind'] ?? '')
    } else if (number === 2) raw = bytes
  }
  return { apiVersion, kind, ...decodeMessage(kind, raw) }
}

const MAGIC = Buffer.from('k8s\0', 'latin1')

interface Field {
  readonly number: number
  /** Of a length-delimited field; empty for the others. */
  readonly bytes: Buffer
  /** Of a varint. */
  readonly value: number
}

/** Wire types 0 (varint), 1 (64 bit), 2 (length-delimited) and 5 (32 bit). */
function* fields(message: Buffer): Generator<Field> {
  let at = 0
  const varint = (): number => {
    let value = 0
    for (let shift = 1; ; shift *= 128) {
      const byte = message[at++]
      if (byte === undefined) throw badRequest('truncated protobuf')
      value += (byte & 0x7f) * shift
      if (byte < 0x80) return value
    }
  }
  while (at < message.length) {
    const tag = varint()
    const wire = tag % 8
    const number = Math.floor(tag / 8)
    if (wire === 0) yield { number, bytes: Buffer.alloc(0), value: varint() }
    else {
      const length = wire === 2 ? varint() : wire === 1 ? 8 : 4
      if (at + length > message.length) throw badRequest('truncated protobuf')
      if (wire === 2) yield { number, bytes: message.subarray(at, at + length), value: 0 }
      at += length
    }
  }
}

function decodeMessage(type: string, message: Buffer): Json {
  const known = SCHEMA[type] ?? {}
  const object: Record<string, unknown> = {}
  for (const field of fields(message)) {
    const [name, valueType] = known[field.number] ?? []
    if (name === undefined || valueType === undefined) continue
    if (valueType.endsWith('[]')) {
      const list = object[name]
      const value = decodeValue(valueType.slice(0, -2), field)
      object[name] = Array.isArray(list) ? [...list, value] : [value]
    } else if (valueType.startsWith('map:')) {
      const entry = decodeEntry(valueType.slice(4), field.bytes)
      object[name] = { ...(typeof object[name] === 'object' ? object[name] : {}), ...entry }
    } else {
      const value = decodeValue(valueType, field)
      // Go's encoder writes empty strings; in JSON they are left out.
      if (value !== '' && value !== undefined) object[name] = value
    }
  }
  return object
}

function decodeValue(type: string, { bytes, value }: Field): unknown {
  switch (type) {
    case 'string':
      return bytes.toString('utf8')
    case 'bytes':
      return bytes.toString('base64')
    case 'int':
      return value
    case 'bool':
      return value !== 0
    case 'IntOrString': {
      const { type: isText = 0, number = 0, text = '' } = decodeMessage('IntOrString', bytes)
      return isText === 0 ? number : text
    }
    case 'Quantity':
      return String(decodeMessage('Quantity', bytes)['text'] ?? '0')
    default:
      return decodeMessage(type, bytes)
  }
}

function decodeEntry(valueType: string, bytes: Buffer): Json {
  let key = ''
  let value: unknown = ''
  for (const field of fields(bytes)) {
    if (field.number === 1) key = field.bytes.toString('utf8')
    else if (field.number === 2) value = decodeValue(valueType, field)
  }
  return { [key]: value }
}

/** Message to field number to JSON name and type; `x[]` is repeated. */
const SCHEMA: Readonly<Record<string, Readonly<Record<number, readonly [name: string, type: string]>>>> = {
  TypeMeta: { 1: ['apiVersion', 'string'], 2: ['kind', 'string'] },
  IntOrString: { 1: ['type', 'int'], 2: ['number', 'int'], 3: ['text', 'string'] },
  Quantity: { 1: ['text', 'string'] },
  ObjectMeta: {
    1: ['name', 'string'],
    2: ['generateName', 'string'],
    3: ['namespace', 'string'],
    5: ['uid', 'string'],
    6: ['resourceVersion', 'string'],
    11: ['labels', 'map:string'],
    12: ['annotations', 'map:string'],
  },
  Namespace: { 1: ['metadata', 'ObjectMeta'] },
  ServiceAccount: { 1: ['metadata', 'ObjectMeta'] },
  ConfigMap: { 1: ['metadata', 'ObjectMeta'], 2: ['data', 'map:string'], 3: ['binaryData', 'map:bytes'] },
  Secret: { 1: ['metadata', 'ObjectMeta'], 2: ['data', 'map:bytes'], 3: ['type', 'string'] },
  Service: { 1: ['metadata', 'ObjectMeta'], 2: ['spec', 'ServiceSpec'] },
  ServiceSpec: {
    1: ['ports', 'ServicePort[]'],
    2: ['selector', 'map:string'],
    3: ['clusterIP', 'string'],
    4: ['type', 'string'],
    10: ['externalName', 'string'],
  },
  ServicePort: {
    1: ['name', 'string'],
    2: ['protocol', 'string'],
    3: ['port', 'int'],
    4: ['targetPort', 'IntOrString'],
    5: ['nodePort', 'int'],
  },
  Deployment: { 1: ['metadata', 'ObjectMeta'], 2: ['spec', 'DeploymentSpec'] },
  DeploymentSpec: { 1: ['replicas', 'int'], 2: ['selector', 'LabelSelector'], 3: ['template', 'PodTemplateSpec'] },
  LabelSelector: { 1: ['matchLabels', 'map:string'] },
  PodTemplateSpec: { 1: ['metadata', 'ObjectMeta'], 2: ['spec', 'PodSpec'] },
  Pod: { 1: ['metadata', 'ObjectMeta'], 2: ['spec', 'PodSpec'] },
  PodSpec: { 2: ['containers', 'Container[]'], 3: ['restartPolicy', 'string'], 8: ['serviceAccountName', 'string'] },
  Container: {
    1: ['name', 'string'],
    2: ['image', 'string'],
    3: ['command', 'string[]'],
    4: ['args', 'string[]'],
    6: ['ports', 'ContainerPort[]'],
    7: ['env', 'EnvVar[]'],
    8: ['resources', 'ResourceRequirements'],
  },
  ContainerPort: { 1: ['name', 'string'], 3: ['containerPort', 'int'], 4: ['protocol', 'string'] },
  EnvVar: { 1: ['name', 'string'], 2: ['value', 'string'] },
  ResourceRequirements: { 1: ['limits', 'map:Quantity'], 2: ['requests', 'map:Quantity'] },
  SelfSubjectAccessReview: { 2: ['spec', 'AccessReviewSpec'] },
  SubjectAccessReview: { 2: ['spec', 'AccessReviewSpec'] },
  AccessReviewSpec: { 1: ['resourceAttributes', 'ResourceAttributes'], 2: ['nonResourceAttributes', 'PathAttributes'] },
  ResourceAttributes: {
    1: ['namespace', 'string'],
    2: ['verb', 'string'],
    3: ['group', 'string'],
    4: ['version', 'string'],
    5: ['resource', 'string'],
    6: ['subresource', 'string'],
    7: ['name', 'string'],
  },
  DeleteOptions: {
    1: ['gracePeriodSeconds', 'int'],
    2: ['preconditions', 'Preconditions'],
    4: ['propagationPolicy', 'string'],
    5: ['dryRun', 'string[]'],
  },
  Preconditions: { 1: ['uid', 'string'], 2: ['resourceVersion', 'string'] },
  Eviction: { 1: ['metadata', 'ObjectMeta'], 2: ['deleteOptions', 'DeleteOptions'] },
  PathAttributes: { 1: ['path', 'string'], 2: ['verb', 'string'] },
}
