// The ledger of pod protection in this process: watches the PodProtectors, decides about deletions, and writes admitted ones
// into the admission histories. The request path and the webhook share one ledger; other replicas have their own, and all
// synchronize through the objects.

import type { CellClocks } from '../../../gateway/core/clocks/cell-clock.ts'
import { nameOf, namespaceOf } from '../../../kit/api/json/json-object.ts'
import type { Clock, Logger } from '../../../kit/api/ports.ts'
import type { Following, ObjectClient } from '../../../kube/api/object-client.ts'
import type { ProtectionSettings } from '../../../process/api/protection-settings.ts'
import { POD_PROTECTORS } from '../../api/pod-protector-kind.ts'
import type {
  ProtectionGate,
  ProtectionRequest,
  ProtectionVerdict,
  Reservation,
  ReservationHold,
  ScaleDownAnswer,
  ScaleDownQuestion,
} from '../../api/protection.ts'
import type { BatchPace, BatchRequest } from '../../core/batch/request.ts'
import { RetryBatch } from '../../core/batch/retry-batch.ts'
import { KnownQuotas } from '../../core/ledger/history.ts'
import { failedVerdict } from '../../core/ledger/verdicts.ts'
import type { ProtectionEvents } from '../../core/requests/protection-events.ts'
import { askProtectors } from '../../core/scale-down/ask-protectors.ts'
import { ProtectorTable, type RestoredProtectors } from '../../state/protectors.ts'
import { type LedgerAnswer, type Reviewed, reviewAll } from './review.ts'
import { type LedgerOperation, type LedgerResult, LedgerWrites, releasesOf } from './writes.ts'

interface ProtectionLedgerDeps {
  /** Client of the API server that holds the PodProtectors. */
  readonly client: ObjectClient
  readonly settings: ProtectionSettings
  readonly clock: Clock
  /** Clocks of the cells whose pods are deleted. */
  readonly clocks: CellClocks
  /** In [0, 1). */
  random(): number
  readonly log: Logger
  readonly events: ProtectionEvents
  /** Called with the namespaces that have a protector, once they are known and when they change. */
  onNamespaces?(namespaces: ReadonlySet<string> | undefined): void
}

export interface ProtectionLedger extends ProtectionGate {
  readonly protectors: ProtectorTable
  /** Whether it is known which pods have a protector: from the core cluster, or from a saved state. */
  readonly knowsProtectors: boolean
  /** Restores a saved state, until the core cluster answers; no effect after that. */
  restore(restored: RestoredProtectors): void
  /** PodProtectors with pending writes. */
  readonly writing: number
  /** Finishes pending writes for at most a second; requests still waiting then get an error. No writes afterwards. */
  stop(): Promise<void>
}

/** Timeout per write, however long its requests would wait. */
const WRITE_TIMEOUT_MS = 10_000
const IDLE_MS = 1_000
/** PodProtectors written concurrently; as many connections as a client of an API server opens. */
const WRITES_AT_ONCE = 32
const STOP_MS = 1_000

export function startProtectionLedger(deps: ProtectionLedgerDeps): ProtectionLedger {
  const ledger = new Ledger(deps)
  ledger.start()
  return ledger
}

class Ledger implements ProtectionLedger {
  readonly protectors: ProtectorTable = new ProtectorTable()
  readonly #deps: ProtectionLedgerDeps
  readonly #batch: RetryBatch<LedgerOperation, LedgerResult>
  readonly #quotas = new KnownQuotas()
  #following: Following | undefined
  #restored: RestoredProtectors | undefined
  #namespaces: ReadonlySet<string> | undefined
  readonly #malformed = new Map<string, string>()
  #stopped = false

  constructor(deps: ProtectionLedgerDeps) {
    this.#deps = deps
    const writes = new LedgerWrites({
      ...deps,
      protectors: this.protectors,
      onUnknown: (key, releases) => this.#takeBack(key, releases),
    })
    this.#batch = new RetryBatch({
      pace: paceOf(deps.settings),
      now: () => deps.clock.monotonic(),
      random: () => deps.random(),
      schedule,
      execute: (key, operations) => writes.execute(key, operations),
      onLate: (key, operation, result) => this.#takeBack(key, releasesOf([operation], [result])),
      onBatch: (_, durationMs, retries) => deps.events.batch(durationMs, retries),
    })
  }

  start(): void {
    const { client, events } = this.#deps
    this.protectors.onChange(({ key, fault }, gone) => this.#onFault(key, gone ? '' : fault))
    this.#following = client.follow(POD_PROTECTORS, '', {
      onReplace: (objects) => this.#index(() => this.protectors.replace(objects)),
      onChange: (type, object) => {
        this.#index(() => {
          if (type === 'DELETED') this.protectors.remove(namespaceOf(object), nameOf(object))
          else this.protectors.put(object)
        })
      },
      onState: (current, message) => events.following(current, message),
    })
  }

  get writing(): number {
    return this.#batch.size
  }

  get knowsProtectors(): boolean {
    return this.protectors.synced || this.#restored !== undefined
  }

  restore(restored: RestoredProtectors): void {
    if (this.protectors.synced) return
    this.#restored = restored
    this.#tellNamespaces()
  }

  covers(namespace: string): boolean {
    return this.#knownNamespaces?.has(namespace) ?? true
  }

  /** Namespaces with a protector; undefined = unknown. */
  get #knownNamespaces(): ReadonlySet<string> | undefined {
    return this.protectors.synced ? this.protectors.namespaces() : this.#restored?.namespaces
  }

  async review(requests: readonly ProtectionRequest[]): Promise<readonly ProtectionVerdict[]> {
    const { clock, events } = this.#deps
    const startMs = clock.monotonic()
    const reviewed = await this.#reviewed(requests)
    const durationMs = clock.monotonic() - startMs
    return requests.map((request, index) => {
      const { verdict, protectors } = reviewed[index] ?? nothingKnown(request, 'the ledger returned no verdict')
      events.reviewed(request, verdict, protectors, durationMs)
      return verdict
    })
  }

  reviewScaleDown(question: ScaleDownQuestion): Promise<ScaleDownAnswer> {
    const { settings, clock, log } = this.#deps
    const unknown = (why: string): Promise<ScaleDownAnswer> => Promise.resolve({ protectors: [], unknown: why })
    if (this.#stopped) return unknown('the gateway is shutting down')
    if (!this.protectors.synced) return unknown('the PodProtectors are not known yet')
    try {
      const protectors = askProtectors(question, this.protectors, settings, clock.now())
      return Promise.resolve({ protectors, unknown: '' })
    } catch (error) {
      log.error('a scale-down cannot be evaluated', { error })
      return unknown('internal error; the log of the gateway has the details')
    }
  }

  release(reservations: readonly Reservation[]): void {
    const byKey = new Map<string, LedgerOperation[]>()
    for (const { cell, uid, holds } of reservations) {
      for (const hold of holds) {
        const key = `${hold.namespace}/${hold.name}`
        const operations = byKey.get(key) ?? []
        operations.push(releaseOf(cell, uid, hold))
        byKey.set(key, operations)
      }
    }
    for (const [key, operations] of byKey) this.#takeBack(key, operations)
  }

  async stop(): Promise<void> {
    if (this.#stopped) return
    this.#stopped = true
    let timer: NodeJS.Timeout | undefined
    const timeout = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, STOP_MS)
    })
    await Promise.race([this.#batch.settled(), timeout])
    clearTimeout(timer)
    this.#batch.stop()
    await this.#following?.stop()
  }

  async #reviewed(requests: readonly ProtectionRequest[]): Promise<readonly Reviewed[]> {
    if (this.#stopped) return requests.map((request) => nothingKnown(request, 'the gateway is shutting down'))
    const { settings, clock, clocks, log } = this.#deps
    try {
      return await reviewAll(
        {
          protectors: this.protectors,
          restored: this.#restored,
          quotas: this.#quotas,
          settings,
          clock,
          clocks,
          submit: (key, operations) => this.#submit(key, operations),
          release: (cell, uid, holds) => this.release([{ cell, uid, holds }]),
        },
        requests,
      )
    } catch (error) {
      // A bug: fails only these deletions.
      log.error('deletions cannot be evaluated', { error })
      return requests.map((request) => nothingKnown(request, 'internal error; the log of the gateway has the details'))
    }
  }

  #submit(key: string, requests: readonly BatchRequest<LedgerOperation>[]): Promise<LedgerAnswer>[] {
    const { clock, events } = this.#deps
    const startMs = clock.monotonic()
    return this.#batch.submit(key, requests).map(async (promise) => {
      const answer = await promise
      events.submitted(answer.type === 'done' ? '' : answer.type, clock.monotonic() - startMs, answer.retries)
      return answer
    })
  }

  /** Releases with the next write. If that keeps failing, the aggregator drops the reservations after reservationTimeout. */
  #takeBack(key: string, operations: readonly LedgerOperation[]): void {
    if (operations.length === 0) return
    const { settings, clock, events } = this.#deps
    events.released(operations.length)
    const deadlineMs = clock.monotonic() + settings.reservationTimeoutMs
    void Promise.all(
      this.#submit(
        key,
        operations.map((operation) => ({ operation, deadlineMs, persistent: true })),
      ),
    )
  }

  #index(change: () => void): void {
    const { clock, events } = this.#deps
    const startMs = clock.monotonic()
    change()
    events.indexed(clock.monotonic() - startMs)
    this.#tellNamespaces()
  }

  #onFault(key: string, fault: string): void {
    if ((this.#malformed.get(key) ?? '') === fault) return
    if (fault === '') this.#malformed.delete(key)
    else {
      this.#malformed.set(key, fault)
      this.#deps.log.warn('PodProtector is malformed', { protector: key, fault })
    }
    this.#deps.events.malformed(this.#malformed.size, fault !== '')
  }

  #tellNamespaces(): void {
    if (this.protectors.synced) this.#restored = undefined
    const namespaces = this.#knownNamespaces
    if (namespaces === undefined || namespaces === this.#namespaces) return
    this.#namespaces = namespaces
    this.#deps.onNamespaces?.(namespaces)
  }
}

function paceOf(settings: ProtectionSettings): BatchPace {
  const { coldStartDelayMs, batchIntervalMs, retryBackoffMs, retryJitterMs } = settings
  const idleMs = Math.max(IDLE_MS, batchIntervalMs)
  return {
    coldStartDelayMs,
    batchIntervalMs,
    retryBackoffMs,
    retryJitterMs,
    idleMs,
    writeTimeoutMs: WRITE_TIMEOUT_MS,
    writesAtOnce: WRITES_AT_ONCE,
  }
}

function schedule(delayMs: number, run: () => void): () => void {
  const timer = setTimeout(run, Math.ceil(delayMs))
  return () => clearTimeout(timer)
}

function releaseOf(cell: string, uid: string, { uid: protectorUid, startTime }: ReservationHold): LedgerOperation {
  return { history: { type: 'release', cell, uid, startTime }, protectorUid }
}

function nothingKnown(request: ProtectionRequest, why: string): Reviewed {
  return { verdict: failedVerdict(request, why), protectors: [] }
}
