// Eviction (policy/v1 and v1beta1, identical but for their names) of POST pods/NAME/eviction: its options, and its annotation
// with the health criterion of the pod (pkg/registry/core/pod/storage/eviction.go).

import { Buffer } from 'node:buffer'
import type { HealthCriterion } from '../../../api/ports/protection.ts'
import { ProtobufReader } from '../../text/protobuf-reader.ts'
import { ProtobufWriter } from '../../text/protobuf-writer.ts'
import { healthCriterion } from '../quota/pod-facts.ts'
import { boundOptions, jsonOptions, readDeleteOptions } from './deletion-request.ts'
import {
  bodyType,
  decodeRecord,
  type JsonRecord,
  joined,
  openEnvelope,
  preconditionsMessage,
  type ReadBody,
  readMessage,
  recordMember,
  sealEnvelope,
  typeOf,
} from './deletion-request-body.ts'
import { queryValues } from './deletion-request-query.ts'

const DRY_RUN: ReadonlySet<string> = new Set(['dryRun'])

export interface EvictionRequest extends ReadBody {
  /** Outranks the pod's own; undefined = none. */
  readonly criterion: HealthCriterion | undefined
}

/**
 * Dry run is requested by the query (CreateOptions) or by deleteOptions; upstream refuses a contradiction.
 * @throws {UnreadableBody}
 */
export function readEvictionRequest(contentType: string, body: Buffer, query: string): EvictionRequest {
  const format = bodyType(contentType)
  const read = format === 'protobuf' ? fromProtobuf(body) : fromJson(decodeRecord(body, format), typeOf(format))
  return { ...read, dryRun: read.dryRun || queryValues(query, DRY_RUN).has('dryRun') }
}

function fromJson(eviction: JsonRecord, contentType: string): EvictionRequest {
  const options = recordMember(eviction, 'deleteOptions', 'v1.DeleteOptions')
  const metadata = recordMember(eviction, 'metadata', 'v1.ObjectMeta')
  const read = jsonOptions(options)
  return {
    ...read,
    criterion: healthCriterion(recordMember(metadata, 'annotations', 'map[string]string')),
    contentType,
    bound: (uid, resourceVersion) => {
      const deleteOptions = boundOptions(options, joined(read, uid, resourceVersion))
      return Buffer.from(JSON.stringify({ ...eviction, deleteOptions }))
    },
  }
}

/** Eviction { metadata = 1, deleteOptions = 2 } (api/policy/v1/generated.proto). */
function fromProtobuf(body: Buffer): EvictionRequest {
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
      criterion: healthCriterion(Object.fromEntries(annotations)),
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
