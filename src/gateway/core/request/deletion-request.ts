// DeleteOptions of a DELETE, parsed like kube-apiserver: from the body or, only without a body, from the query
// (apiserver/pkg/endpoints/handlers/delete.go); and the Eviction of POST pods/NAME/eviction, which contains them.

import { Buffer } from 'node:buffer'
import { int64Problem, isInt64 } from '../../../kit/core/text/int64.ts'
import { ProtobufReader } from '../../../kit/core/text/protobuf-reader.ts'
import { ProtobufWriter } from '../../../kit/core/text/protobuf-writer.ts'
import {
  bodyType,
  decodeRecord,
  JSON_TYPE,
  type JsonRecord,
  joined,
  openEnvelope,
  type Preconditions,
  preconditionsMessage,
  type ReadBody,
  readMessage,
  recordMember,
  sealEnvelope,
  textMember,
  textsMember,
  typeOf,
  UnreadableBody,
} from './write-envelope.ts'
import { queryFlag, queryValues } from './write-query.ts'

type ReadOptions = Pick<ReadBody, 'dryRun' | keyof Preconditions>

/**
 * @param contentType '' = none
 * @param query the part of the target after the `?`
 * @throws {UnreadableBody}
 */
export function readDeletionRequest(contentType: string, body: Buffer, query: string): ReadBody {
  // With a body, kube-apiserver ignores the query: options from the query must be moved into the body.
  if (body.length === 0) return fromJson(queryOptions(query), JSON_TYPE)
  const format = bodyType(contentType)
  if (format !== 'protobuf') return fromJson(decodeRecord(body, format), typeOf(format))
  const envelope = openEnvelope(body)
  const options = readMessage(() => readDeleteOptions(envelope.raw))
  return {
    dryRun: options.dryRun,
    uid: options.uid,
    resourceVersion: options.resourceVersion,
    contentType: typeOf(format),
    bound: (uid, resourceVersion) =>
      sealEnvelope(envelope, preconditionsMessage(joined(options, uid, resourceVersion))),
  }
}

function fromJson(options: JsonRecord, contentType: string): ReadBody {
  const read = jsonOptions(options)
  return {
    ...read,
    contentType,
    bound: (uid, resourceVersion) =>
      Buffer.from(JSON.stringify(boundOptions(options, joined(read, uid, resourceVersion)))),
  }
}

/** @throws {UnreadableBody} 400 if a relevant field has a wrong type */
function jsonOptions(options: JsonRecord): ReadOptions {
  const preconditions = recordMember(options, 'preconditions', 'v1.Preconditions')
  const uid = textMember(preconditions, 'uid', 'types.UID')
  const resourceVersion = textMember(preconditions, 'resourceVersion', 'string')
  return { dryRun: textsMember(options, 'dryRun').length > 0, uid, resourceVersion }
}

function boundOptions(options: JsonRecord, { uid, resourceVersion }: Preconditions): JsonRecord {
  const own = recordMember(options, 'preconditions', 'v1.Preconditions')
  return { ...options, preconditions: { ...own, uid, ...(resourceVersion === '' ? {} : { resourceVersion }) } }
}

/**
 * DeleteOptions { preconditions = 2 { uid = 1, resourceVersion = 2 }, dryRun = 5 }.
 * @throws {SyntaxError}
 */
function readDeleteOptions(message: Buffer): ReadOptions {
  let dryRun = false
  let uid = ''
  let resourceVersion = ''
  const reader = new ProtobufReader(message)
  while (reader.next()) {
    if (reader.number === 5) {
      reader.text()
      dryRun = true
    }
    if (reader.number !== 2) continue
    const preconditions = new ProtobufReader(reader.bytes())
    while (preconditions.next()) {
      if (preconditions.number === 1) uid = preconditions.text()
      if (preconditions.number === 2) resourceVersion = preconditions.text()
    }
  }
  return { dryRun, uid, resourceVersion }
}

const FLAGS = ['orphanDependents', 'ignoreStoreReadErrorWithClusterBreakingPotential'] as const
const QUERY_KEYS: ReadonlySet<string> = new Set([
  'gracePeriodSeconds',
  ...FLAGS,
  'propagationPolicy',
  'dryRun',
  'uid',
  'resourceVersion',
])

/** apimachinery/pkg/apis/meta/v1/conversion.go, Convert_url_Values_To_v1_DeleteOptions: the first value counts. */
function queryOptions(query: string): JsonRecord {
  const options: Record<string, unknown> = { kind: 'DeleteOptions', apiVersion: 'v1' }
  if (query === '') return options
  const values = queryValues(query, QUERY_KEYS)
  const first = (key: string): string | undefined => values.get(key)?.[0]
  const grace = first('gracePeriodSeconds')
  if (grace !== undefined) {
    if (!isInt64(grace)) throw new UnreadableBody(400, int64Problem(grace))
    options['gracePeriodSeconds'] = Number(grace)
  }
  for (const flag of FLAGS) {
    const value = first(flag)
    if (value !== undefined) options[flag] = queryFlag(value)
  }
  const policy = first('propagationPolicy')
  if (policy !== undefined) options['propagationPolicy'] = policy
  const dryRun = values.get('dryRun') ?? []
  if (dryRun.length > 0) options['dryRun'] = dryRun
  const uid = first('uid') ?? ''
  const resourceVersion = first('resourceVersion') ?? ''
  if (uid !== '' || resourceVersion !== '') {
    options['preconditions'] = { ...(uid !== '' && { uid }), ...(resourceVersion !== '' && { resourceVersion }) }
  }
  return options
}

const DRY_RUN: ReadonlySet<string> = new Set(['dryRun'])

/** policy/v1 and v1beta1 are identical but for their names (pkg/registry/core/pod/storage/eviction.go). */
export interface EvictionRequest extends ReadBody {
  /** The Eviction's own, of any shape; of a deletion none. */
  readonly annotations: JsonRecord
}

/**
 * Dry run is requested by the query (CreateOptions) or by deleteOptions; upstream refuses a contradiction.
 * @throws {UnreadableBody}
 */
export function readEvictionRequest(contentType: string, body: Buffer, query: string): EvictionRequest {
  const format = bodyType(contentType)
  const read =
    format === 'protobuf' ? evictionFromProtobuf(body) : evictionFromJson(decodeRecord(body, format), typeOf(format))
  return { ...read, dryRun: read.dryRun || queryValues(query, DRY_RUN).has('dryRun') }
}

function evictionFromJson(eviction: JsonRecord, contentType: string): EvictionRequest {
  const options = recordMember(eviction, 'deleteOptions', 'v1.DeleteOptions')
  const metadata = recordMember(eviction, 'metadata', 'v1.ObjectMeta')
  const read = jsonOptions(options)
  return {
    ...read,
    annotations: recordMember(metadata, 'annotations', 'map[string]string'),
    contentType,
    bound: (uid, resourceVersion) => {
      const deleteOptions = boundOptions(options, joined(read, uid, resourceVersion))
      return Buffer.from(JSON.stringify({ ...eviction, deleteOptions }))
    },
  }
}

/** Eviction { metadata = 1, deleteOptions = 2 } (api/policy/v1/generated.proto). */
function evictionFromProtobuf(body: Buffer): EvictionRequest {
  const envelope = openEnvelope(body)
  return readMessage(() => {
    const annotations = new Map<string, string>()
    const options: Buffer[] = []
    const reader = new ProtobufReader(envelope.raw)
    while (reader.next()) {
      if (reader.number === 1) readAnnotations(reader.bytes(), annotations)
      // Repeated messages are merged.
      if (reader.number === 2) options.push(reader.bytes())
    }
    const read = readDeleteOptions(Buffer.concat(options))
    return {
      ...read,
      annotations: Object.fromEntries(annotations),
      contentType: typeOf('protobuf'),
      bound: (uid, resourceVersion) => {
        const more = new ProtobufWriter()
        more.bytes(2, preconditionsMessage(joined(read, uid, resourceVersion)))
        return sealEnvelope(envelope, more.finish())
      },
    }
  })
}

/** ObjectMeta { annotations = 12 { key = 1, value = 2 } }. */
function readAnnotations(metadata: Buffer, annotations: Map<string, string>): void {
  const reader = new ProtobufReader(metadata)
  while (reader.next()) {
    if (reader.number !== 12) continue
    const entry = new ProtobufReader(reader.bytes())
    let key = ''
    let value = ''
    while (entry.next()) {
      if (entry.number === 1) key = entry.text()
      if (entry.number === 2) value = entry.text()
    }
    annotations.set(key, value)
  }
}
