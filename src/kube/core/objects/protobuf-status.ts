// A metav1.Status in Protobuf (apimachinery/pkg/apis/meta/v1/generated.proto), as an API server that was asked for Protobuf words its refusals.

import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { ProtobufReader } from '../../../kit/core/text/protobuf-reader.ts'
import { PROTOBUF_MAGIC, readEnvelope } from './protobuf-envelope.ts'

const STATUS = { message: 3, reason: 4, details: 5, code: 6 } as const
const RETRY_AFTER_SECONDS = 5

/** The fields that callers rely on. @returns undefined if it is another object, or not Protobuf */
export function readProtobufStatus(body: Buffer): JsonObject | undefined {
  if (!body.subarray(0, PROTOBUF_MAGIC.length).equals(PROTOBUF_MAGIC)) return undefined
  try {
    const { kind, message: fields } = readEnvelope(body)
    return kind === 'Status' && fields !== undefined ? readFields(fields) : undefined
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

function readFields(fields: ProtobufReader): JsonObject {
  let message = ''
  let reason = ''
  let code: number | undefined
  let details: JsonObject = {}
  while (fields.next()) {
    if (fields.number === STATUS.message) message = fields.text()
    if (fields.number === STATUS.reason) reason = fields.text()
    if (fields.number === STATUS.code) code = fields.integer()
    if (fields.number === STATUS.details) details = readDetails(new ProtobufReader(fields.bytes(), fields))
  }
  return {
    kind: 'Status',
    apiVersion: 'v1',
    status: 'Failure',
    message,
    reason,
    details,
    ...(code !== undefined && { code }),
  }
}

function readDetails(details: ProtobufReader): JsonObject {
  let retryAfterSeconds = 0
  while (details.next()) if (details.number === RETRY_AFTER_SECONDS) retryAfterSeconds = details.integer()
  return retryAfterSeconds > 0 ? { retryAfterSeconds } : {}
}
