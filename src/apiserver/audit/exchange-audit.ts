// The audit event of one request to the API server: filled in while the request is served, and written once or, for
// watches, twice. It never contains a body, and of credentials only their ids (a certificate's fingerprint, a token's jti).

import { DEFAULT_DEGRADE_MODE } from '../../gateway/api/upstream-cluster/degrade-modes.ts'
import { parseFeatureGates } from '../../gateway/api/upstream-cluster/feature-gates.ts'
import { FEATURE_GATES_ANNOTATION } from '../../gateway/api/upstream-cluster/upstream-cluster.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { isRecord } from '../../kit/api/json/object-shape.ts'
import type { HeaderList, Peer } from '../../kit/api/stream.ts'
import type { AuditStage } from '../../kube/api/audit.ts'
import type { Status } from '../../kube/api/status.ts'
import { ANONYMOUS, type UserInfo } from '../../kube/api/user.ts'
import { type AuditEvent, auditLine } from '../../kube/io/audit/audit-event.ts'
import type { ControlRequest } from '../http/read-request.ts'

interface ExchangeAuditDeps {
  /** Takes a line, without its terminator. */
  write(line: string): void
  /** Wall clock, milliseconds. */
  now(): number
}

/** Longer ones are truncated, so that unauthenticated requests cannot fill the log. */
const MAX_URI = 4096
/** Same as kube-apiserver (apiserver/pkg/audit/request.go). */
const MAX_USER_AGENT = 1024
/** Codes whose message is logged; those of others (400, 422, 500) quote the request, including keys and tokens. */
const CODES_WITH_MESSAGE: readonly number[] = [401, 403, 404, 405, 406, 409, 410, 413, 415, 429, 503, 504]

export class ExchangeAudit {
  readonly #deps: ExchangeAuditDeps
  readonly #auditId: string
  readonly #receivedMs: number
  readonly #remoteAddress: string
  #method = ''
  #target = ''
  #userAgent = ''
  #request: ControlRequest | undefined
  /** The original user; undefined until authenticated. */
  #caller: UserInfo | undefined
  #user: UserInfo | undefined
  #name = ''
  #annotations: Readonly<Record<string, string>> = {}
  #ended = false

  constructor(deps: ExchangeAuditDeps, peer: Peer, head: HeaderList, auditId: string) {
    this.#deps = deps
    this.#auditId = auditId
    this.#receivedMs = deps.now()
    this.#remoteAddress = peer.remoteAddress
    for (let i = 0; i + 1 < head.length; i += 2) {
      const value = head[i + 1] ?? ''
      if (head[i] === ':method') this.#method = value
      else if (head[i] === ':path') this.#target = value
      else if (head[i] === 'user-agent') this.#userAgent = value
    }
  }

  /** The request head was read. */
  asked(request: ControlRequest): void {
    this.#request = request
  }

  /** The original user, once authenticated. */
  sentBy(caller: UserInfo | 'anonymous'): void {
    this.#caller = caller === 'anonymous' ? ANONYMOUS : caller
  }

  /** The user it runs as, once impersonation is allowed, and the authorization decision. */
  runsAs(user: UserInfo | 'anonymous', allowed: boolean): void {
    this.#user = user === 'anonymous' ? ANONYMOUS : user
    this.annotate({ 'authorization.k8s.io/decision': allowed ? 'allow' : 'forbid' })
  }

  /** The object's name, if only the body has it. */
  named(name: string): void {
    this.#name = name
  }

  annotate(annotations: Readonly<Record<string, string>>): void {
    this.#annotations = { ...this.#annotations, ...annotations }
  }

  /** The response head of a watch was sent. */
  started(): void {
    this.#write('ResponseStarted', { code: 200 })
  }

  /** Writes the event once; later calls do nothing. @param code 0 = no response @param failure the Status in the response */
  completed(code: number, failure?: Status): void {
    if (this.#ended) return
    this.#ended = true
    if (code === 0) this.annotate({ 'portcullis.io/aborted-by': 'client' })
    this.#write('ResponseComplete', responseOf(code, failure))
  }

  #write(stage: AuditStage, response: AuditEvent['response']): void {
    const info = this.#request?.info
    const user = this.#user
    const caller = this.#caller
    this.#deps.write(
      auditLine({
        auditId: this.#auditId,
        stage,
        requestURI: truncated(this.#target, MAX_URI),
        verb: info === undefined || info.verb === '' ? this.#method.toLowerCase() : info.verb,
        user: caller,
        impersonatedUser: user === caller ? undefined : user,
        sourceIP: this.#remoteAddress,
        userAgent: truncated(this.#userAgent, MAX_USER_AGENT),
        object:
          info?.isResourceRequest === true ? { ...info, name: info.name === '' ? this.#name : info.name } : undefined,
        response,
        receivedMs: this.#receivedMs,
        stageMs: Math.max(this.#receivedMs, this.#deps.now()),
        annotations: { 'portcullis.io/server': 'control', ...this.#annotations },
      }),
    )
  }
}

function responseOf(code: number, failure: Status | undefined): AuditEvent['response'] {
  if (failure === undefined) return { code }
  const { reason, message } = failure
  return {
    code,
    status: 'Failure',
    ...(reason !== undefined && { reason }),
    ...(message !== undefined && CODES_WITH_MESSAGE.includes(code) && { message: truncated(message, MAX_URI) }),
  }
}

function truncated(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length)}...TRUNCATED` : text
}

// The changes of a write that matter in an incident: the degrade switch, revocations, and whether everything is refused;
// also what weakens them, such as shadow mode, an end time, or an exemption. Level Metadata alone records only that an object was written.

type Changes = Readonly<Record<string, string>>

/** Annotations of the audit event. @param before, after the UpstreamCluster; undefined = it did, or does, not exist */
export function incidentChanges(before: JsonObject | undefined, after: JsonObject | undefined): Changes {
  const changes: Record<string, string> = {}
  const degrades = [degradeOf(before), degradeOf(after)] as const
  if (degrades[0].content !== degrades[1].content) {
    changes['portcullis.io/degrade'] = degrades.map(({ text }) => text).join(' -> ')
  }
  const revoked = revocationChange(revocationsOf(before), revocationsOf(after))
  if (revoked !== '') changes['portcullis.io/revoked'] = revoked
  const gates = [deniesAll(before), deniesAll(after)]
  if (gates[0] !== gates[1]) changes['portcullis.io/deny-all-requests'] = gates.join(' -> ')
  return changes
}

/** Annotation for the deletion of a collection: how many clusters in which mode, and with how many revocations. */
export function incidentDeletions(deleted: readonly JsonObject[]): Changes {
  if (deleted.length === 0) return {}
  const modes = new Map<string, number>()
  let revoked = 0
  for (const object of deleted) {
    const { mode } = degradeOf(object)
    modes.set(mode, (modes.get(mode) ?? 0) + 1)
    revoked += revocationsOf(object).size
  }
  const counts = [...modes].sort(([a], [b]) => (a < b ? -1 : 1)).map(([mode, count]) => `${count} ${mode}`)
  return { 'portcullis.io/deleted': [...counts, `${revoked} revoked`].join(', ') }
}

interface Degrade {
  readonly mode: string
  /** Text of the annotation. */
  readonly text: string
  /** Equal if only the reason differs. */
  readonly content: string
}

function degradeOf(object: JsonObject | undefined): Degrade {
  const degrade = fieldOf(specOf(object), 'degrade')
  const { mode = DEFAULT_DEGRADE_MODE, shadow, expiresAt, exempt } = isRecord(degrade) ? degrade : {}
  const exempted = Array.isArray(exempt) ? exempt : []
  const parts = [
    String(mode),
    ...(shadow === true ? ['in shadow'] : []),
    ...(typeof expiresAt === 'string' ? [`until ${expiresAt}`] : []),
    ...(exempted.length > 0 ? [`with ${exempted.length} exempt`] : []),
  ]
  const content = JSON.stringify([mode, shadow === true, expiresAt, exempted])
  return { mode: String(mode), text: parts.join(' '), content }
}

/** All revoked users and credentials. */
function revocationsOf(object: JsonObject | undefined): ReadonlySet<string> {
  const revoked = fieldOf(fieldOf(specOf(object), 'authentication'), 'revoked')
  const entries: readonly unknown[] = Array.isArray(revoked) ? revoked : []
  return new Set(
    entries.map((entry) => {
      const { user, certificateFingerprint, tokenHash } = isRecord(entry) ? entry : {}
      return JSON.stringify([user, certificateFingerprint, tokenHash])
    }),
  )
}

/** '' = unchanged. */
function revocationChange(before: ReadonlySet<string>, after: ReadonlySet<string>): string {
  const added = [...after].filter((one) => !before.has(one)).length
  const removed = [...before].filter((one) => !after.has(one)).length
  if (added === 0 && removed === 0) return ''
  // The numbers are equal when one replaces another.
  const exchange = added > 0 && removed > 0 ? ` (${added} added, ${removed} removed)` : ''
  return `${before.size} -> ${after.size}${exchange}`
}

function deniesAll(object: JsonObject | undefined): boolean {
  const text = fieldOf(fieldOf(object?.['metadata'], 'annotations'), FEATURE_GATES_ANNOTATION)
  return typeof text === 'string' && parseFeatureGates(text).enabled.has('DenyAllRequests')
}

function specOf(object: JsonObject | undefined): unknown {
  return object?.['spec']
}

function fieldOf(value: unknown, field: string): unknown {
  return isRecord(value) ? value[field] : undefined
}
