// Events about refused deletions, on the PodProtector and on the pod.

import type { ObjectClient } from '../../../kube/api/object-client.ts'
import {
  EVENTS_OF_REQUESTS_MS,
  EventRecorder,
  type EventRecorderDeps,
} from '../../../kube/controllers/events/event-recorder.ts'
import type { ProtectionRequest, ProtectionVerdict } from '../../api/protection.ts'
import { POD_PROTECTOR_API_VERSION, POD_PROTECTOR_KIND } from '../../api/schema.ts'
import { DELAYED_REASON, REFUSED_REASON } from '../../core/ledger/verdicts.ts'

interface RefusalEventsDeps extends EventRecorderDeps {
  /** Client of the API server that holds the PodProtectors. */
  readonly core: ObjectClient
  /** Client of the cluster that holds the pods of a cell; undefined = unknown, and pods get no Events. */
  worker(cell: string): ObjectClient | undefined
  /** metadata.uid of a PodProtector by `namespace/name`; '' = unknown. */
  protectorUid(key: string): string
}

export class RefusalEvents {
  readonly #deps: RefusalEventsDeps
  readonly #recorder: EventRecorder

  constructor(deps: RefusalEventsDeps) {
    this.#deps = deps
    const { replica, clock, log, pace } = deps
    this.#recorder = new EventRecorder({ replica, clock, log, pace: { objectMs: EVENTS_OF_REQUESTS_MS, ...pace } })
  }

  /** Events that could not be written. */
  get failures(): number {
    return this.#recorder.failures
  }

  /** See ProtectionEvents. Returns at once. */
  reviewed(request: ProtectionRequest, verdict: ProtectionVerdict): void {
    const { status, overridden, protector, message } = verdict
    if (request.dryRun || overridden !== '') return
    if (status !== 'Rejected' && status !== 'RetryAdvised') return
    const reason = status === 'Rejected' ? REFUSED_REASON : DELAYED_REASON
    const [namespace = '', name = ''] = protector.split('/')
    const { pod, cell, user } = request
    const uid = this.#deps.protectorUid(protector)
    const about = { apiVersion: POD_PROTECTOR_API_VERSION, kind: POD_PROTECTOR_KIND, namespace, name, uid }
    const deletion = request.cause === 'EvictPod' ? 'eviction' : 'deletion'
    const said = `${deletion} of pod ${pod.name} in cell ${cell} by ${user} is refused: ${message}`
    this.#recorder.record(this.#deps.core, about, { type: 'Warning', reason, message: said })
    const worker = this.#deps.worker(cell)
    if (worker === undefined) return
    const involved = { apiVersion: 'v1', kind: 'Pod', namespace: pod.namespace, name: pod.name, uid: pod.uid }
    const toldOnPod = `${deletion} by ${user} is refused: ${message}`
    this.#recorder.record(worker, involved, { type: 'Warning', reason, message: toldOnPod })
  }

  /** Drops pending writes. */
  stop(): Promise<void> {
    return this.#recorder.stop()
  }
}
