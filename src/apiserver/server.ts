// The embedded API server on Streams: routes -> authenticate -> authorize -> registry -> response. Start reading here.

import { REVOKED_CREDENTIALS } from '../gateway/api/revoked-credential-kind.ts'
import { UPSTREAM_CLUSTER_KIND } from '../gateway/api/upstream-cluster/upstream-cluster.ts'
import { headerValue } from '../gateway/core/request/hop-headers.ts'
import type { JsonObject } from '../kit/api/json/json-object.ts'
import type { Logger } from '../kit/api/ports.ts'
import {
  ANSWER_WATER_BYTES,
  type Charge,
  type HeaderList,
  type Peer,
  type RequestHandler,
  type ResetReason,
  type Stream,
  type StreamEvents,
} from '../kit/api/stream.ts'
import { warningValues } from '../kit/core/refusal/warning.ts'
import { ownUserCharge } from '../kit/core/shares/charge.ts'
import { inStep } from '../kit/io/stalls/steps.ts'
import { type ObjectWriter, resourceName } from '../kube/api/resource-kind.ts'
import { failure, type Status, StatusError, statusError } from '../kube/api/status.ts'
import type { UserInfo } from '../kube/api/user.ts'
import { BodyPieces } from '../kube/core/answers/body-pieces.ts'
import type { FailureCounts } from '../process/api/failure-counts.ts'
import { type Caller, isRevoked, refuseCredential } from './access/authenticate.ts'
import { type Attributes, type Authorizer, accessForbidden, effectiveUser } from './access/authorize.ts'
import type { StoredObject } from './api/object-store.ts'
import { ExchangeAudit, incidentChanges, incidentDeletions } from './audit/exchange-audit.ts'
import { type FollowRequest, FollowStream } from './follow-stream.ts'
import { type HttpAnswer, statusAnswer } from './http/answer.ts'
import { answerMemory, bodyMemory, type CountLimited, type PortMemory } from './http/port-memory.ts'
import { BodyReader, MAX_BODY_BYTES, MAX_SMALL_BYTES } from './http/read-body.ts'
import { type ControlRequest, readRequest } from './http/read-request.ts'
import { type RouteDeps, type Routed, Routes } from './routes.ts'
import { type WatchRequest, WatchStream } from './watch-stream.ts'

interface ControlDeps extends RouteDeps {
  authenticate(peer: Peer, head: HeaderList): Caller
  /** Await this before `authenticate`; undefined = no need to wait. Never rejects. Default: never. */
  beforeAuthentication?(peer: Peer, head: HeaderList): Promise<void> | undefined
  readonly authorize: Authorizer
  /** Default: failed credentials are not counted. */
  readonly failures?: FailureCounts
  /** Default: refusals by shared limits are not counted. */
  readonly onLimited?: CountLimited
  readonly log: Logger
  /** In [0, 1). */
  random(): number
  /** A UUID, version 4: the Audit-ID of a request. */
  uuid(): string
  /** Takes the lines of the audit log. Default: no audit log. */
  readonly audit?: ((line: string) => void) | undefined
  /** More header fields of every response. Default: none. */
  readonly headers?: HeaderList
}

/** Serves requests. */
export type ControlHandler = RequestHandler & {
  /** Ends watches, each between two events. */
  endWatches(): void
  /** Ends watches and unfinished responses of callers whose credential would now be refused. */
  endRefused(): void
}

/** A response without a natural end. */
type Ongoing = WatchStream | FollowStream

/** Requests whose response has begun but is not complete. */
interface OpenAnswers {
  /** All open ones, with their users. */
  readonly watches: Map<Ongoing, string>
  readonly exchanges: Set<ControlExchange>
}

/** Shared by all connections. */
interface MessageMemory {
  readonly bodies: PortMemory
  readonly answers: PortMemory
}

export function createControlHandler(deps: ControlDeps): ControlHandler {
  const open: OpenAnswers = { watches: new Map(), exchanges: new Set() }
  const memory: MessageMemory = {
    bodies: bodyMemory('requests to the API server', MAX_ALL_BODY_BYTES, deps.onLimited),
    answers: answerMemory(MAX_ALL_ANSWER_BYTES, deps.onLimited),
  }
  const routes = new Routes(deps)
  const handler: RequestHandler = (peer, stream, head, end) => {
    const exchange = new ControlExchange(deps, routes, open, memory, peer, stream)
    exchange.begin(head, end)
    return exchange
  }
  return Object.assign(handler, {
    endWatches(): void {
      for (const watch of [...open.watches.keys()]) watch.finish()
    },
    endRefused(): void {
      for (const exchange of [...open.exchanges]) exchange.endIfRefused()
    },
  })
}

const BUG_MESSAGE = 'Internal error occurred: the request failed inside the server; see its log for this Audit-ID'
const OWN_END =
  'the credential that you are using is now revoked; another administrator can delete the RevokedCredential, or: portcullis control revoke --undo'
/** Longer Audit-IDs of clients are ignored (apiserver/pkg/audit). */
const MAX_AUDIT_ID = 128
/** Open watches per user: each write is serialized for each of them. */
export const MAX_WATCHES_PER_USER = 500
/** Bodies being received, over all users: few users write, and bodies are a few KiB. */
export const MAX_ALL_BODY_BYTES: number = 16 * 1024 * 1024
/** Responses queued for clients, over all users; above it a source over its share gets no more. Watches have limits of their own. */
export const MAX_ALL_ANSWER_BYTES: number = 32 * 1024 * 1024

const EMPTY = Buffer.alloc(0)

/** The part of a body that arrived before its request was authenticated. */
interface EarlyBody {
  readonly pieces: BodyPieces
  end: boolean
}

/** What a request has led to, before it is told. */
interface Outcome {
  readonly answer: ReturnType<Routes['answer']>
  /** For its audit event. */
  readonly annotations: Readonly<Record<string, string>>
}

class ControlExchange implements StreamEvents {
  readonly #deps: ControlDeps
  readonly #routes: Routes
  readonly #open: OpenAnswers
  readonly #memory: MessageMemory
  readonly #peer: Peer
  readonly #stream: Stream
  /** Charged for the request. */
  #charge: Charge
  #body: BodyReader | undefined
  readonly #warnings: string[] = []
  #auditId = ''
  #worked: { readonly auditId: string } | undefined
  #audit: ExchangeAudit | undefined
  #isHead = false
  #routed: Routed | undefined
  #watch: Ongoing | undefined
  #answered = false
  /** Set while authentication has to wait. */
  #early: EarlyBody | undefined

  constructor(deps: ControlDeps, routes: Routes, open: OpenAnswers, memory: MessageMemory, peer: Peer, stream: Stream) {
    this.#deps = deps
    this.#routes = routes
    this.#open = open
    this.#memory = memory
    this.#peer = peer
    this.#charge = peer.addressCharge
    this.#stream = stream
  }

  begin(head: HeaderList, end: boolean): void {
    this.#auditId = auditIdOf(head) ?? this.#deps.uuid()
    this.#worked = { auditId: this.#auditId }
    const { audit: write, registry } = this.#deps
    if (write !== undefined) {
      this.#audit = new ExchangeAudit({ write, now: () => registry.now() }, this.#peer, head, this.#auditId)
    }
    this.#attempt(() => {
      const request = readRequest(head)
      if ('failure' in request)
        throw statusError(request.code === 400 ? 'BadRequest' : 'InternalError', request.failure)
      this.#isHead = request.method === 'HEAD'
      this.#audit?.asked(request)
      const ready = this.#deps.beforeAuthentication?.(this.#peer, head)
      if (ready === undefined) this.#start(request, end)
      else this.#startAfter(ready, request, end)
    })
  }

  #start(request: ControlRequest, end: boolean): void {
    const { user, by } = this.#admit(request)
    this.#memory.answers.admit(this.#charge)
    this.#routed = this.#routes.route(request, user, by)
    // The body of a GET has no meaning (RFC 9110 section 9.3.1), and is dropped: anonymous users may send GETs.
    const reads = this.#isHead || request.method === 'GET'
    if (end || reads) this.#serve(this.#routed)
    else {
      const [limit, announced] = [bodyLimitOf(this.#routed), announcedLength(request.head)]
      this.#body = new BodyReader(limit, announced, this.#memory.bodies, this.#charge)
    }
  }

  /** Body bytes arriving meanwhile are not credited, so that the client sends no more than its window. */
  #startAfter(ready: Promise<void>, request: ControlRequest, end: boolean): void {
    const early: EarlyBody = { pieces: new BodyPieces(), end: false }
    this.#early = early
    void ready.then(() => {
      this.#early = undefined
      if (this.#answered) return
      this.#attempt(() => this.#start(request, end))
      for (const piece of early.pieces.take()) this.onBody(piece, false)
      if (early.end) this.onTrailers()
    })
  }

  onHeaders(): void {
    // Only clients use this.
  }

  onBody(chunk: Buffer, end: boolean): void {
    if (this.#early !== undefined) {
      this.#early.pieces.add(chunk)
      this.#early.end ||= end
      return
    }
    if (chunk.length > 0) this.#stream.credit(chunk.length)
    if (this.#answered) return
    this.#attempt(() => {
      this.#body?.add(chunk)
      if (end && this.#routed !== undefined) this.#serveLate(this.#routed)
    })
  }

  onTrailers(): void {
    if (this.#early !== undefined) {
      this.#early.end = true
      return
    }
    if (this.#answered) return
    this.#attempt(() => {
      if (this.#routed !== undefined) this.#serveLate(this.#routed)
    })
  }

  onDrained(): void {
    this.#watch?.onDrained()
    if (this.#watch === undefined && this.#stream.queued === 0) this.#open.exchanges.delete(this)
  }

  onReset(_reason: ResetReason): void {
    this.#answered = true
    this.#body?.drop()
    this.#watch?.onReset()
    this.#open.exchanges.delete(this)
    this.#audit?.completed(0)
  }

  /** A credential was revoked, or a CA is no longer trusted: possibly this request's. */
  endIfRefused(): void {
    const request = this.#routed?.request
    const caller = request && this.#deps.authenticate(this.#peer, request.head)
    if (caller === undefined || (caller !== 'invalid' && !isRevoked(caller))) return
    this.#audit?.annotate({ 'portcullis.io/ended-by': caller === 'invalid' ? 'credential' : 'revocation' })
    this.#open.exchanges.delete(this)
    if (this.#watch === undefined) this.#stream.reset('cancel')
    else this.#watch.finish()
    // With a token, the connection may carry other users' requests, too.
    if (this.#peer.certificate !== undefined) this.#peer.drain()
  }

  /** Authenticates and authorizes. @throws {StatusError} 401, 403 */
  #admit(request: ControlRequest): Pick<Routed, 'user' | 'by'> {
    const caller = this.#authenticate(request)
    const user = effectiveUser(caller, request.head, this.#deps.authorize)
    const attributes = attributesOf(request)
    const allowed = this.#deps.authorize(user, attributes)
    this.#audit?.runsAs(user, allowed)
    if (!allowed) throw new StatusError(accessForbidden(user, attributes))
    return { user, by: caller === 'anonymous' ? undefined : this.#writer(caller, user !== caller, request) }
  }

  #writer(user: UserInfo, impersonates: boolean, { info }: ControlRequest): ObjectWriter {
    const { apiGroup: group, resource } = info
    const may = (verb: string, subresource: string): boolean =>
      this.#deps.authorize(user, { verb, group, resource, subresource, namespace: '', name: '' })
    return { user, impersonates, may }
  }

  /** @throws {StatusError} 401 */
  #authenticate({ head }: ControlRequest): UserInfo | 'anonymous' {
    const caller = this.#deps.authenticate(this.#peer, head)
    if (caller === 'invalid') {
      // What the handshake did not verify stays unverified on this connection, and a certificate of a former CA is not requested again.
      if (this.#peer.certificate !== undefined) this.#peer.drain()
      throw refuseCredential(this.#deps.failures, this.#peer, head)
    }
    this.#audit?.sentBy(isRevoked(caller) ? caller.user : caller)
    if (!isRevoked(caller)) {
      if (caller !== 'anonymous') {
        this.#charge = ownUserCharge(caller.name)
        this.#peer.charge = this.#charge
      }
      return caller
    }
    if (this.#peer.certificate !== undefined) this.#peer.drain()
    throw statusError('Unauthorized', `Unauthorized: ${caller.revoked}`)
  }

  /** A body may arrive long after its head: the caller may have been revoked since. */
  #serveLate(routed: Routed): void {
    this.#authenticate(routed.request)
    this.#serve(routed)
  }

  #serve(routed: Routed): void {
    const body = this.#body?.bytes() ?? EMPTY
    if (!changesOneCluster(routed)) {
      this.#reply(routed, this.#work(routed, body))
      return
    }
    // With those of other clients that have arrived in this turn: a switch of many clusters waits for the disk once for some of them. If the disk
    // fails for all of them together, each is written again on its own.
    const write = (): Outcome | undefined => {
      if (this.#answered) return undefined
      this.#warnings.length = 0
      // Another request of this turn may have revoked the caller's credential.
      this.#authenticate(routed.request)
      return this.#work(routed, body)
    }
    void this.#deps.registry
      .together(() => inStep('api-server', write, this.#worked))
      .then(
        (outcome) => {
          if (outcome !== undefined) this.#attempt(() => this.#reply(routed, outcome))
        },
        (error: unknown) => {
          this.#attempt(() => {
            throw error
          })
        },
      )
  }

  #work(routed: Routed, body: Buffer): Outcome {
    const before = this.#audit === undefined ? undefined : this.#cluster(routed)
    const all = this.#audit === undefined ? [] : this.#deletable(routed)
    const answer = this.#routes.answer(routed, body, this.#warnings)
    this.#warnOfOwnEnd(routed)
    if (this.#audit === undefined || !('body' in answer)) return { answer, annotations: {} }
    const changes = incidentChanges(before, this.#cluster(routed, answer.createdName))
    const deleted = all.filter((one) => this.#deps.registry.store.get(one) === undefined)
    return { answer, annotations: { ...changes, ...incidentDeletions(deleted.map(({ object }) => object)) } }
  }

  #reply(routed: Routed, { answer, annotations }: Outcome): void {
    if ('body' in answer) {
      this.#audit?.named(answer.createdName ?? '')
      this.#audit?.annotate(annotations)
      this.#send(answer)
    } else this.#startOngoing(answer, routed)
  }

  /** Warns the caller now, instead of letting its next command fail. */
  #warnOfOwnEnd({ route, request }: Routed): void {
    if (route?.kind !== REVOKED_CREDENTIALS) return
    if (isRevoked(this.#deps.authenticate(this.#peer, request.head))) this.#warnings.push(OWN_END)
  }

  /** The current UpstreamCluster of a request. */
  #cluster({ route }: Routed, name = ''): JsonObject | undefined {
    const known = name === '' ? (route?.name ?? '') : name
    if (route?.kind.kind !== UPSTREAM_CLUSTER_KIND || known === '') return undefined
    const key = { resource: resourceName(route.kind), namespace: '', name: known }
    return this.#deps.registry.store.get(key)?.object
  }

  /** The UpstreamClusters that a request may delete. */
  #deletable({ route, request }: Routed): readonly StoredObject[] {
    if (request.info.verb !== 'deletecollection' || route?.kind.kind !== UPSTREAM_CLUSTER_KIND) return []
    return this.#deps.registry.store.list(resourceName(route.kind), { namespace: '' })
  }

  #startOngoing(request: WatchRequest | FollowRequest, routed: Routed): void {
    const user = routed.user === 'anonymous' ? '' : routed.user.name
    let open = 0
    for (const other of this.#open.watches.values()) if (other === user) open++
    if (open >= MAX_WATCHES_PER_USER) {
      const details = { retryAfterSeconds: 1 }
      throw statusError('TooManyRequests', `too many watches: user ${JSON.stringify(user)} has ${open} open`, details)
    }
    this.#answered = true
    const headers = 'begin' in request ? request.begin.headers : watchHeaders(request)
    this.#stream.headers([':status', '200', ...headers, ...this.#ownHeaders()], this.#isHead)
    this.#audit?.started()
    if (this.#isHead) {
      this.#audit?.completed(200)
      return
    }
    const onEnd = (): void => {
      this.#open.watches.delete(ongoing)
      this.#open.exchanges.delete(this)
      this.#audit?.completed(200)
    }
    const ongoing = this.#ongoing(request, onEnd)
    this.#watch = ongoing
    this.#open.watches.set(ongoing, user)
    this.#open.exchanges.add(this)
    ongoing.start()
  }

  #ongoing(request: WatchRequest | FollowRequest, onEnd: () => void): Ongoing {
    if ('begin' in request) return new FollowStream(request, this.#stream, onEnd)
    const { registry, random } = this.#deps
    return new WatchStream({ store: registry.store, now: () => registry.now(), random }, request, this.#stream, onEnd)
  }

  /** Expected errors become responses; others are bugs. */
  #attempt(step: () => void): void {
    try {
      inStep('api-server', step, this.#worked)
    } catch (error) {
      if (!(error instanceof StatusError)) {
        this.#deps.log.error('request failed inside the API server', { error, auditId: this.#auditId })
      }
      if (this.#answered) {
        this.#watch?.onReset()
        this.#stream.reset('internal')
        return
      }
      const status = error instanceof StatusError ? error.status : failure('InternalError', BUG_MESSAGE)
      this.#send(statusAnswer(status), status)
    }
  }

  #send(answer: HttpAnswer, failed?: Status): void {
    this.#answered = true
    this.#body?.drop()
    this.#audit?.completed(answer.code, failed)
    const empty = this.#isHead || answer.body.length === 0
    const head: HeaderList = [':status', String(answer.code), ...answer.headers]
    // RFC 9110 section 8.6: a 304 has no content-length of its own.
    if (answer.code !== 304) head.push('content-length', String(answer.body.length))
    this.#stream.headers([...head, ...this.#ownHeaders()], empty)
    if (!empty) {
      this.#stream.body(answer.body, true)
      this.#memory.answers.chargeAnswer(this.#stream, this.#charge)
    }
    // A shorter body doesn't report its end, and can't block for long; but it may be queued, so release everything of its request.
    if (this.#stream.queued > ANSWER_WATER_BYTES) this.#open.exchanges.add(this)
    else {
      this.#routed = undefined
      this.#audit = undefined
    }
  }

  #ownHeaders(): HeaderList {
    const { registry } = this.#deps
    const headers: HeaderList = ['date', new Date(registry.now()).toUTCString(), 'audit-id', this.#auditId]
    for (const value of warningValues(this.#warnings)) headers.push('warning', value)
    if (this.#deps.headers !== undefined) headers.push(...this.#deps.headers)
    return headers
  }
}

/** Its claims may change; what others have to see before their next request does not. */
function changesOneCluster({ route, request: { info } }: Routed): boolean {
  return route?.kind.kind === UPSTREAM_CLUSTER_KIND && (info.verb === 'patch' || info.verb === 'update')
}

function watchHeaders({ encoding }: WatchRequest): HeaderList {
  return ['content-type', `application/${encoding.format}`, 'cache-control', 'no-cache, private']
}

function bodyLimitOf({ route, request }: Routed): number {
  return route === undefined || request.method === 'DELETE' ? MAX_SMALL_BYTES : MAX_BODY_BYTES
}

/** 0 = none; the body is counted in any case. */
function announcedLength(head: HeaderList): number {
  const length = Number(headerValue(head, 'content-length') ?? '0')
  return Number.isNaN(length) ? 0 : length
}

function attributesOf({ info, method }: ControlRequest): Attributes {
  if (!info.isResourceRequest) return { verb: method.toLowerCase(), path: info.path }
  const { verb, apiGroup, resource, subresource, name } = info
  // In kube-apiserver's RequestInfo the namespace of a Namespace is itself.
  const namespace = info.namespace
  return { verb, group: apiGroup, resource, subresource, namespace, name }
}

function auditIdOf(head: HeaderList): string | undefined {
  for (let i = 0; i + 1 < head.length; i += 2) {
    const value = head[i + 1] ?? ''
    if (head[i] === 'audit-id' && value !== '' && value.length <= MAX_AUDIT_ID) return value
  }
  return undefined
}
