// The ledger's writes: one batch at a time into the admission history of a PodProtector, by compare-and-swap on its status. A deletion
// passes only after it was written; a write that no request waits for any more is released.

import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import type { Clock, Logger } from '../../../kit/api/ports.ts'
import { errorMessage } from '../../../kit/api/validation/error-message.ts'
import { sameJson } from '../../../kit/core/text/same-json.ts'
import type { ObjectClient } from '../../../kube/api/object-client.ts'
import { isMissing, StatusError } from '../../../kube/api/status.ts'
import { errorName } from '../../../kube/controllers/error-name.ts'
import { compileSelector } from '../../../kube/core/selectors/compile-selector.ts'
import type { ProtectionSettings } from '../../../process/api/protection-settings.ts'
import type { PodProtector } from '../../api/pod-protector.ts'
import { POD_PROTECTORS } from '../../api/pod-protector-kind.ts'
import type { BatchOutcome } from '../../core/batch/request.ts'
import { limitsOf } from '../../core/history/cell-history.ts'
import { applyOperations, type HistoryOperation, type OperationResult } from '../../core/ledger/history.ts'
import type { BatchResult, ProtectionEvents } from '../../core/requests/protection-events.ts'
import { readProtector } from '../../core/requests/read-protector.ts'
import type { ProtectorTable } from '../../state/protectors.ts'

export interface LedgerOperation {
  readonly history: HistoryOperation
  /** Only for the PodProtector with this uid, not for another of the same name; undefined = for whichever selects the pod. */
  readonly protectorUid?: string
  /** Monotonic ms: when a ready pod may become available. Default: time alone doesn't make it available. */
  readonly availableFromMs?: number
  /** The protector whose selector matched the pod; if the selector has changed since, the labels are matched again. */
  readonly matchedBy?: { readonly protector: PodProtector; readonly labels: Readonly<Record<string, string>> }
}

export interface LedgerResult extends Omit<OperationResult, 'result'> {
  /** NoProtector: it was deleted or replaced, or no longer selects the pod. */
  readonly result: OperationResult['result'] | 'NoProtector'
  /** Uid of the PodProtector that was written. */
  readonly protectorUid: string
  readonly maxConcurrentLag: number
}

interface LedgerWritesDeps {
  readonly client: ObjectClient
  readonly protectors: ProtectorTable
  readonly settings: ProtectionSettings
  readonly clock: Clock
  readonly log: Logger
  readonly events: ProtectionEvents
  /** A write may or may not have happened. If it did, these operations undo it. */
  onUnknown(key: string, releases: readonly LedgerOperation[]): void
}

const NO_PROTECTOR: LedgerResult = {
  result: 'NoProtector',
  startTime: '',
  count: 0,
  lag: 0,
  required: 0,
  protectorUid: '',
  maxConcurrentLag: 0,
}
const NOTHING_TO_DO: LedgerResult = { ...NO_PROTECTOR, result: 'Done' }

export class LedgerWrites {
  readonly #deps: LedgerWritesDeps
  /** Keys whose cached state may be stale: the next write reads first. */
  readonly #unsure = new Set<string>()

  constructor(deps: LedgerWritesDeps) {
    this.#deps = deps
  }

  /** Writes one batch for RetryBatch. Never rejects. */
  async execute(key: string, operations: readonly LedgerOperation[]): Promise<BatchOutcome<LedgerResult>> {
    const { clock, events } = this.#deps
    const startMs = clock.monotonic()
    const { result, outcome } = await this.#write(key, operations)
    const error = outcome.type === 'done' ? '' : outcome.type === 'conflict' ? 'Conflict' : errorName(outcome.error)
    events.executed(key, operations.length, result, error, clock.monotonic() - startMs)
    return outcome
  }

  async #write(key: string, operations: readonly LedgerOperation[]): Promise<WrittenProtector> {
    let protector: PodProtector | undefined
    try {
      protector = this.#unsure.has(key) ? await this.#read(key) : this.#deps.protectors.get(key)?.protector
    } catch (error) {
      return { result: 'error', outcome: { type: 'failed', error } }
    }
    if (protector === undefined) return this.#gone(key, operations)
    const { status, changed, results } = this.#apply(protector, operations)
    if (!changed) {
      this.#unsure.delete(key)
      return { result: 'unchanged', outcome: { type: 'done', results } }
    }
    // Until the server has answered, which may never happen.
    this.#unsure.add(key)
    const { apiVersion, kind, spec, metadata } = protector
    const { name, namespace, uid, resourceVersion } = metadata
    const object = { apiVersion, kind, metadata: { name, namespace, uid, resourceVersion }, spec, status }
    try {
      const written = await this.#deps.client.update(POD_PROTECTORS, object as JsonObject, 'status')
      this.#unsure.delete(key)
      this.#learn(key, written)
      return { result: 'written', outcome: { type: 'done', results } }
    } catch (error) {
      return this.#onError(key, operations, results, error)
    }
  }

  /** Without a protector the deletion passes. */
  #gone(key: string, operations: readonly LedgerOperation[]): WrittenProtector {
    this.#unsure.delete(key)
    return { result: 'gone', outcome: { type: 'done', results: operations.map(() => NO_PROTECTOR) } }
  }

  #onError(
    key: string,
    operations: readonly LedgerOperation[],
    results: readonly LedgerResult[],
    error: unknown,
  ): WrittenProtector {
    const code = error instanceof StatusError ? error.code : 0
    if (code === 409) return { result: 'conflict', outcome: { type: 'conflict' } }
    if (isMissing(error, nameIn(key))) return this.#gone(key, operations)
    // Only a 4xx guarantees that nothing was written.
    if (code < 400 || code >= 500) this.#deps.onUnknown(key, releasesOf(operations, results))
    this.#deps.log.debug('admission history cannot be written', { protector: key, reason: errorMessage(error) })
    return { result: 'error', outcome: { type: 'failed', error } }
  }

  /** Reads the object from the server, bypassing the watch; undefined = it doesn't exist. */
  async #read(key: string): Promise<PodProtector | undefined> {
    const { client, protectors } = this.#deps
    const name = nameIn(key)
    const at = { namespace: key.slice(0, -name.length - 1), name }
    try {
      const object = await client.get(POD_PROTECTORS, at)
      this.#learn(key, object)
      return readProtector(object, protectors.get(key)?.protector).protector
    } catch (error) {
      if (isMissing(error, at.name)) return undefined
      throw error
    }
  }

  /** Immediately, so that the next verdict sees it. An object that the watch has seen deleted or replaced is left to the watch. */
  #learn(key: string, object: JsonObject): void {
    const known = this.#deps.protectors.get(key)?.protector.metadata.uid
    const { uid } = object['metadata'] as PodProtector['metadata']
    if (known !== undefined && known === uid) this.#deps.protectors.put(object)
  }

  #apply(protector: PodProtector, operations: readonly LedgerOperation[]): Applied {
    const limits = limitsOf(protector, this.#deps.settings)
    const { uid = '' } = protector.metadata
    const { clock } = this.#deps
    const monotonicMs = clock.monotonic()
    const concerned = operations.filter((operation) => concerns(protector, operation))
    const history = concerned.map((operation) => historyAt(operation, monotonicMs))
    const nowMicros = clock.now() * 1000
    const { status, changed, results } = applyOperations(protector, history, limits, nowMicros)
    const resultOf = new Map(concerned.map((operation, index) => [operation, results[index]]))
    const all = operations.map((operation): LedgerResult => {
      const { type } = operation.history
      const result = resultOf.get(operation)
      if (result === undefined) return type === 'release' ? NOTHING_TO_DO : NO_PROTECTOR
      return { ...result, protectorUid: uid, maxConcurrentLag: limits.maxConcurrentLag }
    })
    return { status, changed, results: all }
  }
}

/** Name part of `namespace/name`. */
function nameIn(key: string): string {
  return key.slice(key.indexOf('/') + 1)
}

interface Applied {
  readonly status: PodProtector['status']
  readonly changed: boolean
  readonly results: readonly LedgerResult[]
}

interface WrittenProtector {
  readonly result: BatchResult
  readonly outcome: BatchOutcome<LedgerResult>
}

/** The operation at this moment: the pod may have become available since it was evaluated. */
function historyAt({ history, availableFromMs }: LedgerOperation, monotonicMs: number): HistoryOperation {
  if (history.type !== 'reserve' || history.pod.young !== true) return history
  if (availableFromMs === undefined || monotonicMs < availableFromMs) return history
  return { ...history, pod: { ...history.pod, available: true, young: false } }
}

function concerns(protector: PodProtector, { protectorUid, matchedBy }: LedgerOperation): boolean {
  if (protectorUid !== undefined && protectorUid !== protector.metadata.uid) return false
  const { selector } = protector.spec
  if (matchedBy === undefined || matchedBy.protector === protector) return true
  return sameJson(matchedBy.protector.spec.selector, selector) || compileSelector(selector).matches(matchedBy.labels)
}

/** Operations that undo what these have newly written. */
export function releasesOf(
  operations: readonly LedgerOperation[],
  results: readonly LedgerResult[],
): readonly LedgerOperation[] {
  return operations.flatMap(({ history }, index): LedgerOperation[] => {
    const { startTime = '', protectorUid = '' } = results[index] ?? {}
    if (history.type !== 'reserve' || startTime === '') return []
    const { cell, uid } = history
    return [{ history: { type: 'release', cell, uid, startTime }, protectorUid }]
  })
}
