// The validating webhook for objects that live as CRDs in a Kubernetes cluster: one path, and health checks. Only the kube-apiservers of
// that cluster may call it: a review takes time of the main thread, and reveals the host names of other clusters.

import type { FieldError } from '../../kit/api/json/field-error.ts'
import { type JsonObject, nameOf } from '../../kit/api/json/json-object.ts'
import { isRecord, recordOf } from '../../kit/api/json/object-shape.ts'
import type { Logger } from '../../kit/api/ports.ts'
import type { HeaderList, Peer, RequestHandler, Stream } from '../../kit/api/stream.ts'
import { asCause, errorText } from '../../kit/api/validation/field-causes.ts'
import type { PemChecks } from '../../kit/api/validation/pem-checks.ts'
import { sameJson } from '../../kit/core/text/same-json.ts'
import { admissionAnswer, admissionRequest, malformedReview, oneLine } from '../../kube/api/admission-review.ts'
import { apiVersionOf, type ResourceKind } from '../../kube/api/resource-kind.ts'
import { failure, invalid, type Status, StatusError } from '../../kube/api/status.ts'
import { limitValues } from '../../kube/core/objects/value-count.ts'
import { type HttpAnswer, jsonAnswer, statusAnswer, textAnswer } from '../http/answer.ts'
import { bodyMemory, type CountLimited, type PortMemory } from '../http/port-memory.ts'
import { ReviewExchange } from './review-exchange.ts'
import type { WebhookAuthenticator } from './webhook-callers.ts'

interface ObjectsWebhookDeps {
  /** Called with OBJECTS_WEBHOOK, as the protection webhook calls it with a cell. */
  readonly authenticate: WebhookAuthenticator
  readonly kinds: readonly ResourceKind[]
  /** Resolves the Secrets that an object refers to, for its checks. Never rejects. Default: references are not resolved. */
  kindsFor?(object: unknown): Promise<readonly ResourceKind[]>
  readonly pem: PemChecks
  /** All known UpstreamClusters: objects of other kinds cannot conflict. */
  clusters(): readonly JsonObject[]
  /** Default: refusals due to shares are not counted. */
  readonly onLimited?: CountLimited
  readonly log: Logger
}

/** The path in deploy/webhook; followed by the token of kube-apiservers that present no other credential. */
export const WEBHOOK_PATH = '/admission'
/** Its credentials are bound to this name, as those of the protection webhook are to a cell; no cell can have it. */
export const OBJECTS_WEBHOOK = '/admission'
const HEALTH_PATHS: readonly string[] = ['/healthz', '/livez', '/readyz']
/** Limit for all bodies that are being received, divided among addresses. Callers are authenticated. */
const MAX_WAITING_BYTES = 32 * 1024 * 1024
/** kube-apiserver waits 10 s by default, for body and response. */
const BODY_TIMEOUT_MS = 10_000

const WHERE_FROM = '`portcullis control webhook` prints the configuration with the path that has a token'

export function createWebhookHandler(deps: ObjectsWebhookDeps): RequestHandler {
  const bodies = bodyMemory('reviews of objects', MAX_WAITING_BYTES, deps.onLimited)
  return (peer, stream, head, end) => {
    const exchange = new WebhookExchange(deps, stream, head, bodies)
    exchange.begin(peer, head, end)
    return exchange
  }
}

function objectOf(review: unknown): unknown {
  const request = isRecord(review) ? review['request'] : undefined
  return isRecord(request) ? request['object'] : undefined
}

class WebhookExchange extends ReviewExchange {
  readonly #deps: ObjectsWebhookDeps

  constructor(deps: ObjectsWebhookDeps, stream: Stream, head: HeaderList, bodies: PortMemory) {
    super(stream, head, bodies)
    this.#deps = deps
  }

  /** The body of an unauthenticated caller is not kept. */
  begin(peer: Peer, head: HeaderList, end: boolean): void {
    this.start(this.#plainAnswer() ?? this.#refusal(peer, head), end, BODY_TIMEOUT_MS, peer.addressCharge.source)
  }

  /** The response to everything but reviews. */
  #plainAnswer(): HttpAnswer | undefined {
    if (HEALTH_PATHS.includes(this.path)) return textAnswer(200, 'ok')
    if (this.path !== WEBHOOK_PATH && !this.path.startsWith(`${WEBHOOK_PATH}/`))
      return textAnswer(404, '404 page not found\n')
    return this.method === 'POST' ? undefined : this.notAllowed()
  }

  /** The response to a caller who is not allowed; undefined = go on. */
  #refusal(peer: Peer, head: HeaderList): HttpAnswer | undefined {
    const token = this.path === WEBHOOK_PATH ? undefined : this.path.slice(WEBHOOK_PATH.length + 1)
    switch (this.#deps.authenticate(peer, head, OBJECTS_WEBHOOK, token)) {
      case 'trusted':
      case 'by-path':
        return undefined
      case 'unauthenticated':
        return statusAnswer(failure('Unauthorized', `Unauthorized: ${WHERE_FROM}`))
      case 'other':
        return statusAnswer(failure('Forbidden', `the credential is not one of this webhook: ${WHERE_FROM}`))
    }
  }

  protected override review(review: unknown): void {
    const { kinds, kindsFor } = this.#deps
    if (kindsFor === undefined) this.#answer(review, kinds)
    else {
      void kindsFor(objectOf(review)).then((found) => this.attempt(() => this.#answer(review, found)))
    }
  }

  #answer(review: unknown, scheme: readonly ResourceKind[]): void {
    const checks: AdmissionChecks = { scheme, pem: this.#deps.pem }
    this.send(jsonAnswer(200, reviewAdmission(review, checks, this.#deps.clusters())))
  }

  protected override failed(error: unknown): void {
    this.#deps.log.error('an AdmissionReview failed inside the gateway', { error })
  }

  protected override sent(): void {
    // Not counted.
  }
}

// The validating webhook for UpstreamClusters that live in a Kubernetes cluster (admission.k8s.io/v1 AdmissionReview): the
// rules that neither the schema nor CEL can express, and conflicts between clusters. The gateway checks everything again
// when it reads an object, so that nothing invalid comes into force while the webhook is down.

/** kube-apiserver truncates longer warnings (AdmissionResponse). */
const LONGEST_WARNING = 250
const MOST_WARNINGS = 16

interface AdmissionChecks {
  readonly scheme: readonly ResourceKind[]
  readonly pem: PemChecks
}

/**
 * The AdmissionReview to respond with.
 * @param others all current objects of the kind; the one under review may be among them
 * @throws {StatusError} 400 if `body` is not an AdmissionReview with a request
 */
export function reviewAdmission(body: unknown, checks: AdmissionChecks, others: readonly JsonObject[]): JsonObject {
  const request = admissionRequest(body)
  const { uid, object, operation } = request
  const kind = kindOf(request, checks.scheme)
  const changes = operation === 'CREATE' || operation === 'UPDATE'
  // Other kinds, deletions and subresources are allowed, in case the webhook's configuration is too broad.
  if (kind === undefined || !changes || (request['subResource'] ?? '') !== '') return answer(uid, [], undefined)
  if (!isRecord(object)) throw malformedReview('request.object is not an object')
  const tooLarge = valuesRefusal(object)
  if (tooLarge !== undefined) return answer(uid, [], tooLarge)
  const before = isRecord(request['oldObject']) ? request['oldObject'] : undefined
  const found = problemsOf(kind, object, before, checks.pem, others)
  const errors = found.filter(({ severity }) => severity === 'error')
  const warnings = found.filter(({ severity }) => severity === 'warning').map(errorText)
  if (errors.length === 0) return answer(uid, warnings, undefined)
  // Objects stored before the webhook was installed can still be labelled, and lose their finalizers.
  if (before !== undefined && sameJson(object['spec'], before['spec'])) {
    return answer(uid, [...errors.map(errorText), ...warnings], undefined)
  }
  const causes = errors.map((problem) => asCause(problem, object))
  return answer(uid, warnings, invalid(kind.group, kind.kind, nameOf(object), causes).status)
}

/** The gateway's own API server refuses such objects, too: checking one takes one turn of the event loop. */
function valuesRefusal(object: JsonObject): Status | undefined {
  try {
    limitValues(object)
    return undefined
  } catch (error) {
    if (error instanceof StatusError) return error.status
    throw error
  }
}

function kindOf(request: JsonObject, scheme: readonly ResourceKind[]): ResourceKind | undefined {
  const resource = recordOf(request['resource'])
  const { group, version, resource: plural } = resource
  return scheme.find((kind) => kind.group === group && kind.version === version && kind.plural === plural)
}

/** A dry run is reviewed like any write: a review has no side effects. */
function problemsOf(
  kind: ResourceKind,
  object: JsonObject,
  before: JsonObject | undefined,
  pem: PemChecks,
  others: readonly JsonObject[],
): readonly FieldError[] {
  // The API server sends both; without them only the rules of the spec would apply.
  const whole = { apiVersion: apiVersionOf(kind), kind: kind.kind, ...object }
  const problems = kind.check(whole, before, pem)
  const name = nameOf(object)
  const conflicts = kind.conflicts?.(
    whole,
    others.filter((other) => nameOf(other) !== name),
  )
  return [...problems, ...(conflicts ?? [])]
}

function answer(uid: string, warnings: readonly string[], refusal: Status | undefined): JsonObject {
  const most = warnings.length > MOST_WARNINGS ? MOST_WARNINGS - 1 : MOST_WARNINGS
  const shortened = warnings.slice(0, most).map((warning) => oneLine(warning).slice(0, LONGEST_WARNING))
  if (warnings.length > most) shortened.push(`and ${warnings.length - most} more warnings`)
  return admissionAnswer(uid, { refusal, warnings: shortened })
}
