// Events (core v1) about refused deletions, on the PodProtector and on the pod, for `kubectl describe` and `kubectl get events`. There
// is one Event for each object and reason, with a count. Nothing waits for Events: an excess is dropped, and failed writes are only
// counted.

import { EVENTS } from '../../api/kinds/scheme.ts'
import type { JsonObject } from '../../api/kube/json-object.ts'
import { StatusError } from '../../api/kube/status.ts'
import { POD_PROTECTOR_API_VERSION, POD_PROTECTOR_KIND } from '../../api/pod-protector/pod-protector.ts'
import type { ObjectClient } from '../../api/ports/object-client.ts'
import type { Clock, Logger } from '../../api/ports/ports.ts'
import type { ProtectionRequest, ProtectionVerdict } from '../../api/ports/protection.ts'
import { errorMessage } from '../../api/validation/error-message.ts'
import { DELAYED_REASON, REFUSED_REASON } from '../../core/protection/quota/protection-messages.ts'
import { metaTime } from '../../core/text/meta-time.ts'

export interface RefusalEventsDeps {
  /** Client of the API server that holds the PodProtectors. */
  readonly core: ObjectClient
  /** Client of the cluster that has the pods of a cell; undefined = not known, and pods get no Events. */
  worker(cell: string): ObjectClient | undefined
  /** metadata.uid of a PodProtector by `namespace/name`; '' = not known. */
  protectorUid(key: string): string
  /** Of this process. */
  readonly replica: string
  readonly clock: Clock
  readonly log: Logger
  readonly pace?: Partial<RefusalEventsPace>
}

export interface RefusalEventsPace {
  /** Between two writes of one Event. Default 10 s. */
  readonly objectMs: number
  /** Between any two writes. Default 50 ms. */
  readonly spacingMs: number
}

interface Involved {
  readonly apiVersion: string
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly uid: string
}

/** One Event, as it should be. */
interface Series {
  readonly client: ObjectClient
  readonly involved: Involved
  readonly reason: string
  readonly firstMs: number
  message: string
  lastMs: number
  /** Occurrences, and how many of them were written. */
  count: number
  told: number
  /** Monotonic: not written before. */
  dueMs: number
  writing: boolean
}

const COMPONENT = 'portcullis'
/** Characters of a message, the limit of events.k8s.io. */
const MAX_MESSAGE = 1024
const MAX_NAME = 253
/** Beyond this, the oldest series are forgotten and start over. */
const MAX_SERIES = 2_000
const PACE: RefusalEventsPace = { objectMs: 10_000, spacingMs: 50 }

export class RefusalEvents {
  /** Events that could not be written. */
  failures = 0
  readonly #deps: RefusalEventsDeps
  readonly #pace: RefusalEventsPace
  /** Least recently used first. */
  readonly #series = new Map<string, Series>()
  readonly #writes = new Set<Promise<void>>()
  #timer: NodeJS.Timeout | undefined
  /** Of the timer, monotonic. */
  #wakeMs = 0
  #nextMs = Number.NEGATIVE_INFINITY
  #stopped = false

  constructor(deps: RefusalEventsDeps) {
    this.#deps = deps
    this.#pace = { ...PACE, ...deps.pace }
  }

  /** See ProtectionEvents. Returns at once. */
  reviewed(request: ProtectionRequest, verdict: ProtectionVerdict): void {
    const { status, overridden, protector, message } = verdict
    if (this.#stopped || request.dryRun || overridden !== '') return
    if (status !== 'Rejected' && status !== 'RetryAdvised') return
    const reason = status === 'Rejected' ? REFUSED_REASON : DELAYED_REASON
    const [namespace = '', name = ''] = protector.split('/')
    const { pod, cell, user } = request
    const about = { apiVersion: POD_PROTECTOR_API_VERSION, kind: POD_PROTECTOR_KIND, namespace, name }
    const uid = this.#deps.protectorUid(protector)
    const deletion = request.cause === 'EvictPod' ? 'eviction' : 'deletion'
    const said = `${deletion} of pod ${pod.name} in cell ${cell} by ${user} is refused: ${message}`
    this.#count(this.#deps.core, { ...about, uid }, reason, said)
    const worker = this.#deps.worker(cell)
    const involved = { apiVersion: 'v1', kind: 'Pod', namespace: pod.namespace, name: pod.name, uid: pod.uid }
    if (worker !== undefined) this.#count(worker, involved, reason, `${deletion} by ${user} is refused: ${message}`)
  }

  /** Drops what has not been written. */
  async stop(): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    this.#series.clear()
    await Promise.all(this.#writes)
  }

  #count(client: ObjectClient, involved: Involved, reason: string, message: string): void {
    const key = `${involved.kind}/${involved.namespace}/${involved.name}/${involved.uid}/${reason}`
    const nowMs = this.#deps.clock.now()
    const known = this.#series.get(key)
    const fresh = { client, involved, reason, firstMs: nowMs, count: 0, told: 0, dueMs: 0, writing: false }
    const series: Series = known ?? { ...fresh, message, lastMs: nowMs }
    series.count++
    series.message = message
    series.lastMs = nowMs
    this.#series.delete(key)
    this.#series.set(key, series)
    if (this.#series.size > MAX_SERIES) this.#series.delete(this.#series.keys().next().value ?? key)
    // For a burst, arming once is enough.
    if (series.count === series.told + 1) this.#arm()
  }

  #arm(): void {
    const next = this.#stopped ? undefined : this.#nextDue()
    if (next === undefined) return
    const wakeMs = Math.max(next.dueMs, this.#nextMs)
    if (this.#timer !== undefined && this.#wakeMs <= wakeMs) return
    clearTimeout(this.#timer)
    this.#wakeMs = wakeMs
    const waitMs = Math.max(0, Math.ceil(wakeMs - this.#deps.clock.monotonic()))
    this.#timer = setTimeout(() => this.#writeNext(), waitMs)
    this.#timer.unref()
  }

  #nextDue(): Series | undefined {
    let first: Series | undefined
    for (const series of this.#series.values()) {
      if (series.writing || series.told === series.count) continue
      if (first === undefined || series.dueMs < first.dueMs) first = series
    }
    return first
  }

  #writeNext(): void {
    this.#timer = undefined
    const nowMs = this.#deps.clock.monotonic()
    const series = this.#nextDue()
    if (series === undefined) return
    if (series.dueMs > nowMs || this.#nextMs > nowMs) {
      this.#arm()
      return
    }
    this.#nextMs = nowMs + this.#pace.spacingMs
    series.dueMs = nowMs + this.#pace.objectMs
    series.writing = true
    const write = this.#write(series).finally(() => {
      series.writing = false
      this.#writes.delete(write)
      this.#arm()
    })
    this.#writes.add(write)
    this.#arm()
  }

  async #write(series: Series): Promise<void> {
    const { count, told } = series
    series.told = count
    try {
      // Only the count of a written Event changes; the server may have deleted it in between.
      if (told === 0 || !(await this.#patch(series, count))) await this.#create(series, count)
    } catch (error) {
      this.failures++
      const reason = errorMessage(error)
      this.#deps.log.debug('event cannot be written', { reason, event: series.reason })
    }
  }

  async #create(series: Series, count: number): Promise<void> {
    const event = eventOf(series, count, this.#deps.replica)
    try {
      await series.client.create(EVENTS, event)
    } catch (error) {
      if (!(error instanceof StatusError) || error.reason !== 'AlreadyExists') throw error
      // Written by another replica, or by this one before a restart.
      const at = { namespace: series.involved.namespace, name: eventName(series) }
      const known = (await series.client.get(EVENTS, at))['count']
      const before = typeof known === 'number' ? known : 1
      series.count += before
      series.told += before
      await this.#patch(series, count + before)
    }
  }

  /** @returns false when the Event does not exist */
  async #patch(series: Series, count: number): Promise<boolean> {
    const at = { namespace: series.involved.namespace, name: eventName(series) }
    const body = { count, lastTimestamp: metaTime(series.lastMs), message: shortened(series.message) }
    try {
      await series.client.patch(EVENTS, at, 'application/merge-patch+json', body, { fieldManager: COMPONENT })
      return true
    } catch (error) {
      if (error instanceof StatusError && error.reason === 'NotFound') return false
      throw error
    }
  }
}

function eventOf(series: Series, count: number, replica: string): JsonObject {
  const { involved, reason, firstMs, lastMs, message } = series
  const { uid, ...reference } = involved
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: eventName(series), namespace: involved.namespace },
    involvedObject: { ...reference, ...(uid !== '' && { uid }) },
    type: 'Warning',
    reason,
    message: shortened(message),
    source: { component: COMPONENT, host: replica },
    reportingComponent: COMPONENT,
    reportingInstance: replica,
    firstTimestamp: metaTime(firstMs),
    lastTimestamp: metaTime(lastMs),
    count,
  }
}

function eventName({ involved: { name, uid }, reason }: Series): string {
  const suffix = `.${reason.toLowerCase()}.${uid.slice(0, 8)}`.replace(/\.$/, '')
  return `${name.slice(0, MAX_NAME - suffix.length).replace(/[.-]+$/, '')}${suffix}`
}

function shortened(message: string): string {
  return message.length > MAX_MESSAGE ? `${message.slice(0, MAX_MESSAGE - 3)}...` : message
}
