// Pod protection as a validating admission webhook, for deletions that do not pass the gateway: POST /CELL, or /CELL/TOKEN where the
// cell's kube-apiservers present no other credential. Whatever an AdmissionReview can express is sent as one, with 200: any other
// response is a failed call to kube-apiserver, and its failurePolicy decides.

import { type HttpAnswer, jsonAnswer, statusAnswer, textAnswer } from '../../apiserver/http/answer.ts'
import { bodyMemory, type PortMemory } from '../../apiserver/http/port-memory.ts'
import { ReviewExchange } from '../../apiserver/webhooks/review-exchange.ts'
import type { WebhookAuthenticator } from '../../apiserver/webhooks/webhook-callers.ts'
import type { CompiledProtection } from '../../gateway/core/cluster/compiled-cluster.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import type { Clock, Logger } from '../../kit/api/ports.ts'
import type { HeaderList, Peer, RequestHandler, Stream } from '../../kit/api/stream.ts'
import { errorMessage } from '../../kit/api/validation/error-message.ts'
import { parseDuration } from '../../kit/core/text/duration.ts'
import { failure, StatusError } from '../../kube/api/status.ts'
import type { PodFacts, ProtectionGate, ProtectionRequest } from '../api/protection.ts'
import { isGuarded, podFacts } from '../core/quota/pod-facts.ts'
import { type EvictionSubject, PROBE_ANSWER, type ReviewSubject, reviewSubject } from '../core/quota/review-subject.ts'
import {
  allowed,
  evaluated,
  refused,
  reviewAnswer,
  type WebhookDecision,
  type WebhookStatus,
  withoutVerdict,
} from './answer.ts'

/** Podseidon's message (webhook/handler/interpreter.go). */
const UNEXPECTED = 'Unexpected review subject; only pod deletions and evictions are handled by this webhook'

export interface ProtectionWebhookDeps {
  readonly gate: Omit<ProtectionGate, 'reviewScaleDown'>
  /** undefined = no UpstreamCluster has such a cell. */
  cell(id: string): { readonly protection: CompiledProtection } | undefined
  /** Reads the pod from the cell. Rejects with a StatusError of code 404 when it does not exist. */
  getPods(cell: string, namespace: string, name: string): Promise<readonly JsonObject[]>
  readonly clock: Clock
  readonly authenticate: WebhookAuthenticator
  readonly log: Logger
  /** For /readyz: whether the ledger can answer. Default: always. */
  ready?(): boolean
  onReview?(outcome: WebhookOutcome): void
}

/** Called for each answered request other than health checks. */
export interface WebhookOutcome {
  /** '' = one that is not known. */
  readonly cell: string
  readonly cause: 'DeletePod' | 'EvictPod' | 'Unknown'
  /** HttpError: the response was not a review; see `code`. */
  readonly status: WebhookStatus | 'HttpError'
  readonly allowed: boolean
  /** HTTP status code. */
  readonly code: number
  readonly durationMs: number
}

const HEALTH_PATHS: readonly string[] = ['/healthz', '/livez', '/readyz']
/** Limit for all bodies that are being received, divided among cells. Callers are authenticated, and a review of a pod has some 10 KiB. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024
/** kube-apiserver waits this long by default, for body and response. */
const DEFAULT_TIMEOUT_MS = 10_000
/** The response must be sent this long before the caller gives up; at most a tenth of its timeout. */
const MARGIN_MS = 500

export function createProtectionWebhook(deps: ProtectionWebhookDeps): RequestHandler {
  const bodies = bodyMemory('reviews of pod protection', MAX_WAITING_BYTES)
  return (peer, stream, head, end) => {
    const exchange = new ProtectionExchange(deps, stream, head, bodies)
    exchange.begin(peer, head, end)
    return exchange
  }
}

class ProtectionExchange extends ReviewExchange {
  readonly #deps: ProtectionWebhookDeps
  readonly #startMs: number
  #cell = ''
  #unverified = true
  /** The reported outcome; set by a valid review. */
  #outcome: Pick<WebhookOutcome, 'cause' | 'status' | 'allowed'> = {
    cause: 'Unknown',
    status: 'HttpError',
    allowed: false,
  }

  constructor(deps: ProtectionWebhookDeps, stream: Stream, head: HeaderList, bodies: PortMemory) {
    super(stream, head, bodies)
    this.#deps = deps
    this.#startMs = deps.clock.monotonic()
  }

  /** The body of an unauthenticated caller is not kept. */
  begin(peer: Peer, head: HeaderList, end: boolean): void {
    const plain = this.#health() ?? this.#admit(peer, head)
    this.start(plain, end, this.#timeoutMs(), `cell ${JSON.stringify(this.#cell)}`)
  }

  #health(): HttpAnswer | undefined {
    const asked = this.method === 'GET' || this.method === 'HEAD'
    if (!asked || !HEALTH_PATHS.includes(this.path)) return undefined
    if (this.path === '/readyz' && this.#deps.ready?.() === false) return textAnswer(503, 'not ready: ledger\n')
    return textAnswer(200, 'ok')
  }

  /** The response to anything but a review of a cell by an authenticated caller; undefined = go on. */
  #admit(peer: Peer, head: HeaderList): HttpAnswer | undefined {
    const [cell, token] = segmentsOf(this.path)
    if (cell === undefined) return textAnswer(404, '404 page not found\n')
    if (this.method !== 'POST') return this.notAllowed()
    const caller = this.#deps.authenticate(peer, head, cell, token)
    if (caller === 'unauthenticated') return statusAnswer(failure('Unauthorized', 'Unauthorized'))
    if (caller === 'other') {
      const message = `the credential is not one of cell ${JSON.stringify(cell)}`
      return statusAnswer(failure('Forbidden', message))
    }
    this.#cell = cell
    this.#unverified = caller === 'by-path'
    return undefined
  }

  #timeoutMs(): number {
    const asked = parseDuration(new URLSearchParams(this.query).get('timeout') ?? '')
    const timeoutMs = asked !== undefined && asked > 0 ? asked : DEFAULT_TIMEOUT_MS
    return timeoutMs - Math.min(MARGIN_MS, timeoutMs / 10)
  }

  protected override review(review: unknown): void {
    const subject = reviewSubject(review)
    const deadlineMs = this.#startMs + this.#timeoutMs()
    const asked = { cell: this.#cell, subject, unverified: this.#unverified, deadlineMs }
    decideReview(this.#deps, asked)
      .catch((error: unknown) => {
        this.#deps.log.error('a review of pod protection failed inside the gateway', { cell: this.#cell, error })
        const { shadow = false, failurePolicy = 'Fail' } = this.#deps.cell(this.#cell)?.protection ?? {}
        return withoutVerdict('the review failed inside the gateway; see its log', shadow ? 'Ignore' : failurePolicy)
      })
      .then((decision) => {
        const { status, refusal } = decision
        this.#outcome = { cause: subject.type, status, allowed: refusal === undefined }
        this.send(jsonAnswer(200, reviewAnswer(subject.uid, decision)))
      })
      .catch((error: unknown) => this.#deps.log.error('a review of pod protection could not be answered', { error }))
  }

  protected override failed(error: unknown): void {
    this.#deps.log.error('an AdmissionReview failed inside the gateway', { cell: this.#cell, error })
  }

  protected override sent(code: number): void {
    // Health.
    if (this.#outcome.status === 'HttpError' && code < 400) return
    const cell = this.#cell !== '' && this.#deps.cell(this.#cell) !== undefined ? this.#cell : ''
    const durationMs = this.#deps.clock.monotonic() - this.#startMs
    this.#deps.onReview?.({ ...this.#outcome, cell, code, durationMs })
  }
}

/** `/CELL` or `/CELL/TOKEN`; nothing for any other path. */
function segmentsOf(path: string): readonly string[] {
  const [root, ...raw] = path.split('/')
  if (root !== '' || raw.length < 1 || raw.length > 2 || raw.includes('')) return []
  try {
    return raw.map((segment) => decodeURIComponent(segment))
  } catch {
    return []
  }
}

interface AskedReview {
  readonly cell: string
  readonly subject: ReviewSubject
  /** The review may be forged: the pod is looked up before anything is recorded. */
  readonly unverified: boolean
  /** Monotonic deadline: a later answer is of no use to the caller. */
  readonly deadlineMs: number
}

/**
 * The decision on one review. The ledger evaluates it, as for the filter in the request path; what the filter has from its cluster and its
 * upstream, the exclusions and the pod, is added here. Never rejects because of the cell or the ledger.
 */
async function decideReview(deps: ProtectionWebhookDeps, asked: AskedReview): Promise<WebhookDecision> {
  const { subject, cell } = asked
  if (subject.type === 'Unknown') return refused('Unexpected', 'InternalError', UNEXPECTED)
  // This is how the kubelet removes pods. Nothing is to be recorded.
  if (subject.type === 'DeletePod' && subject.pod.terminating) return allowed('AlreadyTerminating')
  const protection = deps.cell(cell)?.protection
  if (protection === undefined) return refused('UnknownCell', 'NotFound', unknownCell(cell))
  if (subject.type === 'EvictPod' && subject.probe) return answerProbe(deps, cell, subject, protection)
  const namespace = subject.type === 'DeletePod' ? subject.pod.namespace : subject.namespace
  if (protection.excludedNamespaces.has(namespace) || !deps.gate.covers(namespace)) return allowed('NotRelevant')
  const leftMs = Math.min(protection.timeoutMs, asked.deadlineMs - deps.clock.monotonic())
  return withinTime(evaluate(deps, asked, protection, leftMs), leftMs, protection)
}

async function evaluate(
  deps: ProtectionWebhookDeps,
  { cell, subject, unverified }: AskedReview,
  protection: CompiledProtection,
  timeoutMs: number,
): Promise<WebhookDecision> {
  if (subject.type === 'Unknown') return allowed('NotRelevant')
  const found =
    subject.type === 'DeletePod' && !unverified ? subject.pod : await lookUp(deps, cell, subject, protection)
  if ('status' in found) return found
  if (!isGuarded(protection, found.labels)) return allowed('NotRelevant')
  const request: ProtectionRequest = {
    cell,
    cause: subject.type,
    via: 'webhook',
    pod: found,
    criterion: subject.type === 'EvictPod' ? subject.criterion : undefined,
    user: subject.caller.name,
    dryRun: subject.dryRun,
    shadow: protection.shadow,
    timeoutMs,
  }
  const [verdict] = await deps.gate.review([request])
  if (verdict === undefined) throw new Error('the ledger gave no verdict')
  const marked = protection.shadow || found.forceDelete
  return evaluated(verdict, marked ? 'Ignore' : protection.failurePolicy, marked)
}

/** The pod, or the decision when it cannot be read. */
async function lookUp(
  deps: ProtectionWebhookDeps,
  cell: string,
  subject: Exclude<ReviewSubject, { type: 'Unknown' }>,
  protection: CompiledProtection,
): Promise<PodFacts | WebhookDecision> {
  const { namespace, name } = subject.type === 'DeletePod' ? subject.pod : subject
  let objects: readonly JsonObject[]
  try {
    objects = await deps.getPods(cell, namespace, name)
  } catch (error) {
    const message = errorMessage(error)
    if (error instanceof StatusError && error.code === 404) return refused('NotFound', 'NotFound', message)
    return withoutVerdict(`pod ${namespace}/${name} cannot be read from cell ${cell}: ${message}`, policyOf(protection))
  }
  const pods = new Map(objects.flatMap((object) => podFacts(object) ?? []).map((pod) => [pod.uid, pod]))
  const meant = subject.type === 'DeletePod' ? subject.pod.uid : subject.onlyUid
  const pod = pods.get(meant) ?? pods.values().next().value
  if (subject.type === 'EvictPod' && pods.size > 1 && !pods.has(meant)) {
    const message = `several clusters of cell ${cell} have a pod ${namespace}/${name}, and an eviction does not say which`
    return withoutVerdict(message, policyOf(protection))
  }
  if (pod === undefined)
    return withoutVerdict(`pod ${namespace}/${name} of cell ${cell} has no uid`, policyOf(protection))
  if (subject.type === 'EvictPod') return preconditionFault(subject, pod) ?? pod
  // The pod under review is gone, and another one has its name: deleting that one was not requested.
  if (pod.uid !== subject.pod.uid) return refused('NotFound', 'NotFound', `pods "${name}" not found`)
  return pod
}

/** Always a refusal: nothing else in the response to a dry run reaches the caller. */
async function answerProbe(
  deps: ProtectionWebhookDeps,
  cell: string,
  subject: EvictionSubject,
  protection: CompiledProtection,
): Promise<WebhookDecision> {
  const found = await lookUp(deps, cell, subject, { ...protection, shadow: false, failurePolicy: 'Fail' })
  if ('status' in found && found.refusal?.reason !== 'NotFound') return found
  return refused('NotRelevant', 'NotFound', `${PROBE_ANSWER}cell ${cell} is protected here`)
}

/** The API server would refuse the eviction afterwards, and its reservation would be wasted. */
function preconditionFault(
  { onlyUid, onlyVersion, name }: EvictionSubject,
  pod: PodFacts,
): WebhookDecision | undefined {
  const fault = (field: string, wanted: string, is: string): WebhookDecision | undefined => {
    if (wanted === '' || wanted === is) return undefined
    const message = `the ${field} in the precondition (${wanted}) does not match the ${field} in record (${is})`
    return refused('NotFound', 'Conflict', `Operation cannot be fulfilled on pods "${name}": ${message}`)
  }
  return fault('UID', onlyUid, pod.uid) ?? fault('ResourceVersion', onlyVersion, pod.resourceVersion)
}

/** An answer that comes too late is useless; the aggregator finds that its reservation did not happen. */
async function withinTime(
  decision: Promise<WebhookDecision>,
  leftMs: number,
  protection: CompiledProtection,
): Promise<WebhookDecision> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<WebhookDecision>((resolve) => {
    const message = `pod deletion could not be evaluated within ${Math.max(0, Math.round(leftMs))} ms`
    timer = setTimeout(() => resolve(withoutVerdict(message, policyOf(protection))), Math.max(0, leftMs))
  })
  try {
    return await Promise.race([decision, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Shadow mode refuses nothing, whatever goes wrong. */
function policyOf({ shadow, failurePolicy }: CompiledProtection): 'Fail' | 'Ignore' {
  return shadow ? 'Ignore' : failurePolicy
}

function unknownCell(cell: string): string {
  const what = `cell ${JSON.stringify(cell)} is not known here: no UpstreamCluster has it in spec.podProtection.cell`
  return `${what}; fix the path of the webhook, or remove the webhook: portcullis protect uninstall`
}
