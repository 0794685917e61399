// The audit log under an audit policy: which requests are recorded, at which stages, and with how much of their bodies. Semantics follow
// kube-apiserver (apiserver/pkg/endpoints/filters/audit.go, apiserver/pkg/audit/request.go); the gateway's decision is in annotations.

import { gunzipSync } from 'node:zlib'
import type { AuditTrail } from '../../../gateway/api/audit-trail.ts'
import type { RequestRecord } from '../../../gateway/api/request-record.ts'
import { recordOf, textOf } from '../../../kit/api/json/object-shape.ts'
import type { Shares } from '../../../kit/core/shares/shares.ts'
import type { AuditResponse } from '../../../kube/io/audit/audit-event.ts'
import type { AuditPolicy } from '../../core/policy.ts'
import { RecordedBody, type RecordedObject, recordedMemory, recordObject } from '../../core/recorded-body.ts'
import { type AuditDecision, AuditRules } from '../../core/rules.ts'
import { type AuditAdditions, auditEvent, auditObject, responseStatus } from './audit-log.ts'

interface PolicyAuditOptions {
  readonly policy: AuditPolicy
  /** Limit of one recorded body. */
  readonly maxBodyBytes: number
  /** Receives a line, without its end. */
  readonly write: (line: string) => void
}

/** Limit of a Status, which is recorded at every level. */
const MAX_STATUS_BYTES = 16 * 1024
/** Like kube-apiserver (apiserver/pkg/audit/request.go). */
const MAX_USER_AGENT = 1024
const UNSUPPORTED_MEDIA_TYPE = 415
/** No JSON starts with these bytes. */
const GZIP_MAGIC = [0x1f, 0x8b] as const

export class PolicyAudit {
  readonly #options: PolicyAuditOptions
  readonly #memory = recordedMemory()
  #rules: AuditRules

  constructor(options: PolicyAuditOptions) {
    this.#options = options
    this.#rules = new AuditRules(options.policy)
  }

  /** Applies to requests authenticated from now on. */
  set policy(policy: AuditPolicy) {
    this.#rules = new AuditRules(policy)
  }

  /** Memory used by bodies. */
  get recordedBytes(): number {
    return this.#memory.held
  }

  /** Again, if a member of the cluster serves it, as the user that the sender is there: what was decided before counts no more. */
  requestIdentified(record: RequestRecord): void {
    record.auditDecided = true
    if (record.audit instanceof PolicyTrail) record.audit.discard()
    record.audit = undefined
    const decision = this.#decide(record)
    if (decision.level === 'None') return
    const trail = new PolicyTrail(record, decision, this.#memory, this.#options.maxBodyBytes)
    record.audit = trail
    if (decision.received) this.#options.write(auditEvent(record, 'RequestReceived', 0, trail.received()))
  }

  responseStarted(record: RequestRecord): void {
    // An error's event contains the Status, which arrives with the body.
    if (!record.longRunning || record.code >= 400) return
    if (record.audit instanceof PolicyTrail) this.#started(record, record.audit)
  }

  requestEnded(record: RequestRecord): void {
    // Refused before authentication, or before the impersonated user was known.
    const isEarly = !record.auditDecided
    // kube-apiserver records nothing else for unauthenticated requests.
    if (isEarly && record.refusal === 'unauthorized') this.#unauthorized(record)
    else if (isEarly) this.requestIdentified(record)
    const trail = record.audit
    if (!(trail instanceof PolicyTrail)) return
    if (isEarly) trail.responseBody(record.refusalBody)
    if (record.longRunning) this.#started(record, trail)
    const { decision } = trail
    const isPanic = record.refusal === 'internal'
    if (isPanic ? decision.panic : decision.complete) {
      const stage = isPanic ? 'Panic' : 'ResponseComplete'
      this.#options.write(auditEvent(record, stage, record.durationMs, trail.complete()))
    }
    trail.discard()
    record.audit = undefined
  }

  #unauthorized(record: RequestRecord): void {
    record.auditDecided = true
    const decision = this.#decide(record)
    if (decision.level === 'None') return
    const trail = new PolicyTrail(record, decision, this.#memory, this.#options.maxBodyBytes)
    trail.responseBody(record.refusalBody)
    this.#started(record, trail)
    trail.discard()
  }

  #started(record: RequestRecord, trail: PolicyTrail): void {
    if (trail.isStarted) return
    trail.isStarted = true
    if (!trail.decision.started) return
    const afterMs = record.ttfbMs < 0 ? record.durationMs : record.ttfbMs
    this.#options.write(auditEvent(record, 'ResponseStarted', afterMs, trail.started()))
  }

  #decide(record: RequestRecord): AuditDecision {
    const impersonated = record.impersonator !== ''
    SENDER.name = impersonated ? record.impersonator : record.user
    SENDER.groups = impersonated ? record.impersonatorGroups : record.groups
    return this.#rules.decide(record, SENDER)
  }
}

/** Shared by all requests: it is read at once. */
const SENDER: { name: string; groups: readonly string[] } = { name: '', groups: [] }

class PolicyTrail implements AuditTrail {
  readonly decision: AuditDecision
  isStarted = false
  readonly #record: RequestRecord
  readonly #memory: Shares
  readonly #maxBodyBytes: number
  readonly #user: string
  #request: RecordedBody | undefined
  #response: RecordedBody | undefined
  #responseObject: RecordedObject | undefined

  constructor(record: RequestRecord, decision: AuditDecision, memory: Shares, maxBodyBytes: number) {
    this.#record = record
    this.decision = decision
    this.#memory = memory
    this.#maxBodyBytes = maxBodyBytes
    this.#user = record.impersonator === '' ? record.user : record.impersonator
  }

  requestBody(chunk: Buffer): void {
    if (chunk.length === 0 || !this.#recordsRequest) return
    this.#request ??= new RecordedBody(this.#memory, this.#user, this.#maxBodyBytes)
    this.#request.add(chunk)
  }

  /** At level Metadata only for the name, if the URL does not have it. */
  get #recordsRequest(): boolean {
    const { isResourceRequest, longRunning, verb, name } = this.#record
    if (!isResourceRequest || longRunning) return false
    return this.decision.level === 'Metadata' ? verb === 'create' && name === '' : true
  }

  responseBody(chunk: Buffer): void {
    if (chunk.length === 0) return
    if (this.#response === undefined) {
      const whole = this.decision.level === 'RequestResponse' && this.#record.isResourceRequest
      const isStatus = this.#record.code >= 400 || this.#record.verb === 'delete'
      if (!isStatus && (!whole || this.#record.longRunning)) return
      const limit = whole ? this.#maxBodyBytes : Math.min(this.#maxBodyBytes, MAX_STATUS_BYTES)
      this.#response = new RecordedBody(this.#memory, this.#user, limit)
    }
    this.#response.add(chunk)
  }

  discard(): void {
    this.#request?.discard()
    this.#response?.discard()
  }

  received(): AuditAdditions {
    return { level: this.decision.level, ...shortAgent(this.#record) }
  }

  /** For an error, called once its body has arrived, and includes it. */
  started(): AuditAdditions {
    const { level } = this.decision
    const response = this.#record.code < 400 ? undefined : this.#takeResponse()
    return {
      level,
      response: responseOf(this.#record, response?.value),
      responseObject: level === 'RequestResponse' ? response?.json || undefined : undefined,
      ...shortAgent(this.#record),
    }
  }

  complete(): AuditAdditions {
    const { level } = this.decision
    const record = this.#record
    // A body that upstream did not decode is not recorded.
    const sent = record.code === UNSUPPORTED_MEDIA_TYPE ? undefined : this.#request
    const request = this.#recorded(sent, record.verb === 'patch')
    const response = this.#takeResponse()
    const annotations: Record<string, string> = {}
    const withRequest = level === 'Request' || level === 'RequestResponse'
    if (withRequest && request?.why) annotations['portcullis.io/request-object'] = `not recorded: ${request.why}`
    const withResponse = level === 'RequestResponse'
    if (withResponse && response?.why) annotations['portcullis.io/response-object'] = `not recorded: ${response.why}`
    return {
      level,
      response: responseOf(record, response?.value),
      object: record.isResourceRequest ? objectOf(record, request?.value) : undefined,
      requestObject: withRequest ? request?.json || undefined : undefined,
      responseObject: withResponse ? response?.json || undefined : undefined,
      annotations,
      ...shortAgent(record),
    }
  }

  #takeResponse(): RecordedObject | undefined {
    const body = this.#response
    this.#response = undefined
    if (body !== undefined) this.#responseObject = this.#recorded(body, false)
    return this.#responseObject
  }

  #recorded(body: RecordedBody | undefined, isPatch: boolean): RecordedObject | undefined {
    if (body === undefined) return undefined
    if (body.missing !== '') return { json: '', why: body.missing, value: undefined }
    const whole = body === this.#request ? body.take() : unpacked(body.take(), body.limit)
    if (typeof whole === 'string') return { json: '', why: whole, value: undefined }
    return recordObject(whole, this.#record, this.decision.omitManagedFields, isPatch)
  }
}

/** kube-apiserver compresses responses above 128 KiB. @returns the reason if it cannot be unpacked */
function unpacked(body: Buffer, limit: number): Buffer | string {
  if (body[0] !== GZIP_MAGIC[0] || body[1] !== GZIP_MAGIC[1]) return body
  try {
    return gunzipSync(body, { maxOutputLength: limit })
  } catch (error) {
    const isTooLarge = error instanceof RangeError
    return isTooLarge ? `it is larger than ${limit} bytes` : 'it is not whole, or not gzip'
  }
}

function shortAgent({ userAgent }: RequestRecord): { userAgent?: string } {
  return userAgent.length > MAX_USER_AGENT ? { userAgent: `${userAgent.slice(0, MAX_USER_AGENT)}...TRUNCATED` } : {}
}

/** A Status is recorded completely, except for its metadata. @param body of the response, from upstream or the gateway */
function responseOf(record: RequestRecord, body: unknown): AuditResponse {
  if (record.code === 0) return { code: undefined, message: 'Connection closed early' }
  const own = responseStatus(record)
  const fields = recordOf(body)
  if (fields['kind'] !== 'Status' || fields['apiVersion'] !== 'v1') return own
  const { status, message, reason, details } = fields
  return {
    status: textOr(status, own.status),
    message: textOr(message, own.message),
    reason: textOr(reason, own.reason),
    details,
    code: record.code,
  }
}

/** Name and namespace that only a create's body contains; what a write says about the object. */
function objectOf(record: RequestRecord, body: unknown): AuditAdditions['object'] {
  const object = auditObject(record)
  if (record.verb !== 'create' && record.verb !== 'update') return object
  const metadata = recordOf(recordOf(body)['metadata'])
  return {
    ...object,
    namespace: object.namespace || textOf(metadata['namespace']),
    name: object.name || textOf(metadata['name']),
    uid: textOf(metadata['uid']) || undefined,
    resourceVersion: textOf(metadata['resourceVersion']) || undefined,
  }
}

function textOr(value: unknown, other: string | undefined): string | undefined {
  return typeof value === 'string' ? value : other
}
