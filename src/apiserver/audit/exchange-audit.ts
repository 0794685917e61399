// What goes to the audit log about one request to the API server: filled in step by step while it is served, written once or, for
// watches, twice. Never a body, and of credentials only their ids (a certificate's fingerprint, a token's jti).

import type { Status } from '../../api/kube/status.ts'
import { ANONYMOUS, type UserInfo } from '../../api/kube/user.ts'
import type { HeaderList, Peer } from '../../api/ports/stream.ts'
import { type AuditEvent, type AuditStage, auditLine } from '../../io/logs/audit-event.ts'
import type { ControlRequest } from '../http/read-request.ts'

export interface ExchangeAuditDeps {
  /** Takes a line, without its end. */
  write(line: string): void
  /** Wall clock, milliseconds. */
  now(): number
}

/** Longer ones are cut: a stranger's request must not be able to write much more than its few interesting bytes. */
const MAX_URI = 4096
/** As kube-apiserver (apiserver/pkg/audit/request.go). */
const MAX_USER_AGENT = 1024
/** Messages of others (400, 422, 500) quote what was sent, keys and tokens among it. */
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
  /** Who sent it; undefined until it is known. */
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

  /** The head could be read. */
  asked(request: ControlRequest): void {
    this.#request = request
  }

  /** Who sends it, once that is proven. */
  sentBy(caller: UserInfo | 'anonymous'): void {
    this.#caller = caller === 'anonymous' ? ANONYMOUS : caller
  }

  /** Whom it runs as, once that is allowed, and whether that one may do it. */
  runsAs(user: UserInfo | 'anonymous', allowed: boolean): void {
    this.#user = user === 'anonymous' ? ANONYMOUS : user
    this.annotate({ 'authorization.k8s.io/decision': allowed ? 'allow' : 'forbid' })
  }

  /** Of the object, where only the body says it. */
  named(name: string): void {
    this.#name = name
  }

  annotate(annotations: Readonly<Record<string, string>>): void {
    this.#annotations = { ...this.#annotations, ...annotations }
  }

  /** The head of a watch is out. */
  started(): void {
    this.#write('ResponseStarted', { code: 200 })
  }

  /** Once; later calls say nothing. @param code 0 = nothing was answered @param failure what was answered instead of an object */
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
        requestURI: cut(this.#target, MAX_URI),
        verb: info === undefined || info.verb === '' ? this.#method.toLowerCase() : info.verb,
        user: caller,
        impersonatedUser: user === caller ? undefined : user,
        sourceIP: this.#remoteAddress,
        userAgent: cut(this.#userAgent, MAX_USER_AGENT),
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
    ...(message !== undefined && CODES_WITH_MESSAGE.includes(code) && { message: cut(message, MAX_URI) }),
  }
}

function cut(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length)}...TRUNCATED` : text
}
