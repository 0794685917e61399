// DeleteOptions of a DELETE, as kube-apiserver reads them: from the body or, only if there is none, from the query
// (apiserver/pkg/endpoints/handlers/delete.go).

import { Buffer } from 'node:buffer'
import { int64Problem, isInt64 } from '../../text/int64.ts'
import { ProtobufReader } from '../../text/protobuf-reader.ts'
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
} from './deletion-request-body.ts'
import { queryFlag, queryValues } from './deletion-request-query.ts'

type ReadOptions = Pick<ReadBody, 'dryRun' | keyof Preconditions>

/**
 * @param contentType '' = none
 * @param query the part of the target after the `?`
 * @throws {UnreadableBody}
 */
export function readDeletionRequest(contentType: string, body: Buffer, query: string): ReadBody {
  // With a body, kube-apiserver ignores the query: options from the query must be put in the body.
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

/** @throws {UnreadableBody} 400 when what matters here is of a wrong type */
export function jsonOptions(options: JsonRecord): ReadOptions {
  const preconditions = recordMember(options, 'preconditions', 'v1.Preconditions')
  const uid = textMember(preconditions, 'uid', 'types.UID')
  const resourceVersion = textMember(preconditions, 'resourceVersion', 'string')
  return { dryRun: textsMember(options, 'dryRun').length > 0, uid, resourceVersion }
}

export function boundOptions(options: JsonRecord, { uid, resourceVersion }: Preconditions): JsonRecord {
  const own = recordMember(options, 'preconditions', 'v1.Preconditions')
  return { ...options, preconditions: { ...own, uid, ...(resourceVersion === '' ? {} : { resourceVersion }) } }
}

/**
 * DeleteOptions { preconditions = 2 { uid = 1, resourceVersion = 2 }, dryRun = 5 }.
 * @throws {SyntaxError}
 */
export function readDeleteOptions(message: Buffer): ReadOptions {
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
