// Reads spec.replicas from the body of a write, in every format that kube-apiserver accepts. Whatever is uncertain is left to upstream, by
// a dry run: a reading that differs from kube-apiserver's would be a way around every check.

import { isRecord, textOf } from '../../../kit/api/json/object-shape.ts'
import { ProtobufReader } from '../../../kit/core/text/protobuf-reader.ts'
import { decodeObject } from '../../../kube/core/objects/strict-decode.ts'
import { isPlainYaml } from '../../../kube/core/objects/yaml-plain.ts'
import type { ScaleTarget } from '../request/scale-target.ts'
import { openEnvelope, UnreadableBody } from '../request/write-envelope.ts'

// The replicas that a write asks for, as far as the body tells.
export type ReplicasWritten =
  /** If the write succeeds, spec.replicas is this. */
  | { readonly kind: 'replicas'; readonly value: number }
  | { readonly kind: 'unchanged' }
  /** Depends on the current object, or is not parsed here. */
  | { readonly kind: 'ask-upstream' }
  /** No kube-apiserver accepts it; `why` is for people. */
  | { readonly kind: 'unreadable'; readonly why: string }

const ASK_UPSTREAM: ReplicasWritten = { kind: 'ask-upstream' }
const UNCHANGED: ReplicasWritten = { kind: 'unchanged' }

const MAX_INT32 = 2 ** 31 - 1

/** @param value of the field; present, and not null */
function replicasValue(value: unknown): ReplicasWritten {
  if (typeof value !== 'number') return { kind: 'unreadable', why: 'spec.replicas is not a number' }
  // Where patches are applied Go converts floats to int32, in its own way if they are too large.
  return Number.isInteger(value) && value >= 0 && value <= MAX_INT32 ? { kind: 'replicas', value } : ASK_UPSTREAM
}

export interface ScaleWrite {
  readonly target: Pick<ScaleTarget, 'isScale' | 'builtIn'>
  readonly verb: 'update' | 'patch'
  /** As sent, including parameters; '' = none. */
  readonly contentType: string
  /**
   * As sent. Content-Encoding does not matter: kube-apiserver decompresses no request, and reads these very bytes. Bodies above its limit
   * (3 MiB) must not come here.
   */
  readonly body: Buffer
}

/** Bytes; etcd accepts no larger object (--max-request-bytes), and parsing delays other requests. */
const MAX_READ_BYTES = 1536 * 1024
/** Characters of YAML that is not JSON, which takes about fifteen times as long to parse. */
const MAX_READ_YAML = 32 * 1024

/** Linear in the body; larger bodies are left to upstream. */
export function readReplicas(write: ScaleWrite): ReplicasWritten {
  const { verb, contentType, body, target } = write
  if (body.length > MAX_READ_BYTES) return ASK_UPSTREAM
  const mediaType = contentType.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  return verb === 'update' ? readUpdate(mediaType, body, target) : readPatch(mediaType, body, target)
}

function readUpdate(mediaType: string, body: Buffer, target: ScaleWrite['target']): ReplicasWritten {
  switch (mediaType) {
    // HPA and other clients without the header: kube-apiserver uses its first format.
    case '':
    case 'application/json':
      return readObject(decoded(body, 'json'), target)
    case 'application/yaml':
      return readObject(decoded(body, 'yaml'), target)
    case 'application/vnd.kubernetes.protobuf':
      return readProtobuf(body, target)
    default:
      return ASK_UPSTREAM
  }
}

function readPatch(mediaType: string, body: Buffer, target: ScaleWrite['target']): ReplicasWritten {
  switch (mediaType) {
    case 'application/merge-patch+json':
      return readMerge(decoded(body, 'json'), target)
    case 'application/strategic-merge-patch+json':
      return readStrategic(decoded(body, 'json'), target)
    case 'application/json-patch+json':
      return readJsonPatch(decoded(body, 'json'))
    case 'application/apply-patch+yaml':
      return readApply(decoded(body, 'yaml'))
    default:
      return ASK_UPSTREAM
  }
}

/** undefined = kube-apiserver might read it differently: duplicate field (Go merges structs), depth, odd numbers. */
function decoded(body: Buffer, format: 'json' | 'yaml'): unknown {
  const text = body.toString('utf8')
  // Clients send JSON even as YAML.
  const json = decodedAs(text, 'json')
  if (json !== undefined || format === 'json' || !isPlainYaml(body)) return json
  return decodedAs(text, 'yaml')
}

function decodedAs(text: string, format: 'json' | 'yaml'): unknown {
  try {
    const { value, duplicates } = decodeObject(text, format, MAX_READ_YAML)
    return duplicates.length > 0 ? undefined : value
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

/** A whole object: absent fields get their defaults. */
function readObject(object: unknown, target: ScaleWrite['target']): ReplicasWritten {
  if (!isRecord(object)) return ASK_UPSTREAM
  const spec = own(object, 'spec') ?? {}
  if (!isRecord(spec)) return ASK_UPSTREAM
  const replicas = own(spec, 'replicas') ?? undefined
  return replicas === undefined ? absent(target) : replicasValue(replicas)
}

/** RFC 7396: null removes the field, which then gets its default. */
function readMerge(patch: unknown, target: ScaleWrite['target']): ReplicasWritten {
  if (!isRecord(patch)) return ASK_UPSTREAM
  if (!Object.hasOwn(patch, 'spec')) return UNCHANGED
  const spec = own(patch, 'spec')
  if (!isRecord(spec)) return ASK_UPSTREAM
  if (!Object.hasOwn(spec, 'replicas')) return UNCHANGED
  const replicas = own(spec, 'replicas')
  return replicas === null ? absent(target) : replicasValue(replicas)
}

/** Like a merge patch, unless a directive (`$patch: replace`, `$retainKeys`) changes its meaning. */
function readStrategic(patch: unknown, target: ScaleWrite['target']): ReplicasWritten {
  if (!isRecord(patch)) return ASK_UPSTREAM
  const spec = own(patch, 'spec')
  if (hasDirective(patch) || (isRecord(spec) && hasDirective(spec))) return ASK_UPSTREAM
  return readMerge(patch, target)
}

/** If the field is absent, this manager may have owned it, and it is removed then: only upstream knows. */
function readApply(configuration: unknown): ReplicasWritten {
  if (!isRecord(configuration)) return ASK_UPSTREAM
  const spec = own(configuration, 'spec')
  const replicas = isRecord(spec) ? (own(spec, 'replicas') ?? undefined) : undefined
  return replicas === undefined ? ASK_UPSTREAM : replicasValue(replicas)
}

/** List order directives do not affect replicas. */
function hasDirective(record: Readonly<Record<string, unknown>>): boolean {
  return Object.keys(record).some((key) => key.startsWith('$') && !key.startsWith('$setElementOrder/'))
}

/** Defaults of apps/v1 and v1 (pkg/apis/apps/v1/defaults.go): 1; a Scale has none, and Go's zero is 0. Other kinds have webhooks. */
function absent({ isScale, builtIn }: ScaleWrite['target']): ReplicasWritten {
  if (isScale) return { kind: 'replicas', value: 0 }
  return builtIn ? { kind: 'replicas', value: 1 } : ASK_UPSTREAM
}

function own(record: Readonly<Record<string, unknown>>, key: string): unknown {
  return Object.hasOwn(record, key) ? record[key] : undefined
}

// spec.replicas in a JSON patch (RFC 6902), as applied by kube-apiserver (gopkg.in/evanphx/json-patch.v4).
const REPLICAS = '/spec/replicas'
/** The effect of an operation on one of these depends on the current object. */
const ABOVE: ReadonlySet<string> = new Set(['', '/', '/spec', '/spec/'])
/** They affect only the path they name. */
const PLAIN: ReadonlySet<string> = new Set(['add', 'replace', 'remove'])

/** Certain only if the field itself gets an `add` or `replace`, and other operations can't touch it. */
function readJsonPatch(operations: unknown): ReplicasWritten {
  if (!Array.isArray(operations)) return ASK_UPSTREAM
  let written: ReplicasWritten = UNCHANGED
  for (const operation of operations as readonly unknown[]) {
    if (!isRecord(operation)) return ASK_UPSTREAM
    const op = textOf(operation['op'])
    // Decides whether the patch applies, not what it does. It could fail as a dry run and succeed a moment later as the write itself.
    if (op === 'test') continue
    const path = operation['path']
    // The library drops what precedes the first slash.
    if (!PLAIN.has(op) || typeof path !== 'string' || !path.startsWith('/')) return ASK_UPSTREAM
    if (ABOVE.has(path) || path.startsWith(`${REPLICAS}/`)) return ASK_UPSTREAM
    if (path !== REPLICAS) continue
    const value = operation['value']
    if (op === 'remove' || value === undefined || value === null) return ASK_UPSTREAM
    written = replicasValue(value)
    if (written.kind !== 'replicas') return written
  }
  return written
}

// spec.replicas in protobuf: in Deployments, ReplicaSets, StatefulSets, ReplicationControllers and Scales alike it is field 1 of field 2
// (k8s.io/api/{apps/v1,core/v1,autoscaling/v1}/generated.proto).
const SPEC_FIELD = 2
const REPLICAS_FIELD = 1

function readProtobuf(body: Buffer, { isScale, builtIn }: Pick<ScaleTarget, 'isScale' | 'builtIn'>): ReplicasWritten {
  if (!isScale && !builtIn) return ASK_UPSTREAM
  try {
    const replicas = readSpecs(new ProtobufReader(openEnvelope(body).raw))
    // Go truncates a larger number to 32 bits.
    if (replicas !== undefined && Math.abs(replicas) > MAX_INT32) return ASK_UPSTREAM
    // A Scale has no default, and zero may be omitted.
    return replicasValue(replicas ?? (isScale ? 0 : 1))
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof UnreadableBody) return ASK_UPSTREAM
    throw error
  }
}

/** Several specs are merged, and the last field wins. */
function readSpecs(object: ProtobufReader): number | undefined {
  let replicas: number | undefined
  while (object.next()) {
    if (object.number !== SPEC_FIELD) continue
    const spec = new ProtobufReader(object.bytes())
    while (spec.next()) if (spec.number === REPLICAS_FIELD) replicas = spec.integer()
  }
  return replicas
}
