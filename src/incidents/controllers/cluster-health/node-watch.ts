// Watches the nodes of one cluster with the gateway's own credential, directly, so that a degrade mode doesn't block it. Of
// each node only the inputs of the formula are kept.

import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { recordOf, recordsOf, textOf } from '../../../kit/api/json/object-shape.ts'
import type { Clock, Logger } from '../../../kit/api/ports.ts'
import { errorMessage } from '../../../kit/api/validation/error-message.ts'
import type { LabelSelector } from '../../../kit/api/validation/label-selector-schema.ts'
import { NODES } from '../../../kube/api/kinds/foreign-kinds.ts'
import type { ClosableClient } from '../../../kube/api/object-client.ts'
import { Informer } from '../../../kube/controllers/kernel/informer.ts'
import { selectorText } from '../../../kube/core/selectors/compile-selector.ts'
import type { NodesSeen } from '../../api/cluster-health.ts'
import { countNodes, type NodeState, READINESS_DEFAULTS } from '../../core/readiness.ts'

const TO_BE_DELETED = 'ToBeDeletedByClusterAutoscaler'
const NOT_READY_TAINTS: ReadonlySet<string> = new Set([
  'node.kubernetes.io/not-ready',
  'node.kubernetes.io/disk-pressure',
  'node.kubernetes.io/network-unavailable',
])
/** Conditions that keep pods away when they are True. */
const TROUBLES: ReadonlySet<string> = new Set(['DiskPressure', 'NetworkUnavailable'])

interface NodeWatchOptions {
  readonly cluster: string
  readonly client: ClosableClient
  /** undefined = all nodes. */
  readonly selector: LabelSelector | undefined
  /** A node that is not ready counts as unready only this long after its creation. Milliseconds */
  readonly startupMs: number
  /** Interval at which an idle cluster proves that it is reachable, milliseconds. */
  readonly proofMs: number
  readonly clock: Clock
  readonly log: Logger
}

/** Characters: it becomes part of the cluster's status. */
const MAX_MESSAGE = 500

export class NodeWatch {
  readonly #options: NodeWatchOptions
  readonly #nodes: Informer<NodeState>
  #message = ''
  #observedAtMs: number
  #provedAtMs: number
  #proving = false
  #stopped = false

  constructor(options: NodeWatchOptions) {
    const { client, selector, clock } = options
    this.#options = options
    this.#observedAtMs = clock.monotonic()
    this.#provedAtMs = clock.monotonic()
    const labelSelector = selector === undefined ? '' : selectorText(selector)
    this.#nodes = new Informer({
      client,
      kind: NODES,
      choice: { labelSelector, transform: slimNode },
      keep: nodeState,
      onVersion: () => this.#observed(clock.monotonic()),
      onState: (current, message) => this.onState(current, message),
    })
  }

  /** Current state. */
  seen(): NodesSeen {
    const { clock, startupMs } = this.#options
    const options = { ...READINESS_DEFAULTS, maxNodeStartupMs: startupMs }
    const { registered, ready, unready, notStarted } = countNodes(
      [...this.#nodes.objects.values()],
      [],
      options,
      clock.now(),
    ).total
    return {
      ready,
      unready,
      total: registered,
      notStarted,
      complete: this.#nodes.listed,
      observedAtMs: this.#observedAtMs,
      message: this.#message,
    }
  }

  /**
   * Asks the cluster for its newest version when it has been silent for a while: idle nodes send no events, and
   * bookmarks come once a minute. Call it about once a second.
   */
  prove(): void {
    const { clock, proofMs, client, log, cluster } = this.#options
    const nowMs = clock.monotonic()
    const quiet = nowMs - Math.max(this.#observedAtMs, this.#provedAtMs) >= proofMs
    if (!quiet || this.#proving || !this.#nodes.current || client.currentVersion === undefined) return
    this.#proving = true
    this.#provedAtMs = nowMs
    client
      .currentVersion(NODES)
      .then(
        // What was committed before the request has been sent by now, or the watch is about to break.
        () => this.#observed(nowMs),
        (error: unknown) => {
          const why = errorMessage(error)
          log.debug('nodes cannot be read', { cluster, why })
        },
      )
      .finally(() => {
        this.#proving = false
      })
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await this.#nodes.stop()
    await this.#options.client.close()
  }

  onState(current: boolean, said: string): void {
    const { log, cluster } = this.#options
    const message = printable(said)
    if (current) {
      this.#observed(this.#options.clock.monotonic())
      if (!this.#nodes.current) {
        log.info('the nodes of a cluster are watched', { cluster, nodes: this.#nodes.objects.size })
      }
    } else if (message !== this.#message) {
      log.warn('the nodes of a cluster cannot be watched', { cluster, why: message })
    }
    this.#message = message
  }

  #observed(atMs: number): void {
    if (!this.#stopped && atMs > this.#observedAtMs) this.#observedAtMs = atMs
  }
}

/** The server's message: truncated, and without terminal control characters. */
function printable(text: string): string {
  return text.slice(0, MAX_MESSAGE).replaceAll(/\p{Cc}/gu, ' ')
}

/** Drops images, annotations and managed fields, which make up most of a node. */
function slimNode(node: JsonObject): JsonObject {
  const { name, uid, resourceVersion, creationTimestamp } = recordOf(node['metadata'])
  const { providerID, taints } = recordOf(node['spec'])
  const { conditions } = recordOf(node['status'])
  return {
    ...node,
    metadata: { name, uid, resourceVersion, creationTimestamp },
    spec: { providerID, taints },
    status: { conditions },
  } as JsonObject
}

/**
 * The little that is needed of a Node, as the cluster-autoscaler sees it (utils/kubernetes/ready.go, clusterstate.go). Values of a wrong type
 * count as absent.
 */
export function nodeState(node: JsonObject): NodeState {
  const metadata = recordOf(node['metadata'])
  const spec = recordOf(node['spec'])
  const conditions = recordsOf(recordOf(node['status'])['conditions'])
  const taints = recordsOf(spec['taints']).map(({ key }) => textOf(key))
  const createdMs = Date.parse(textOf(metadata['creationTimestamp']))
  return {
    name: textOf(metadata['name']),
    group: '',
    providerID: textOf(spec['providerID']),
    createdMs: Number.isNaN(createdMs) ? 0 : createdMs,
    deleted: taints.includes(TO_BE_DELETED),
    suspended: conditions.some(({ type, status }) => type === 'Suspended' && status === 'True'),
    ready: isReady(conditions) && !taints.some((key) => NOT_READY_TAINTS.has(key)),
  }
}

/** False without a Ready condition: its kubelet has not reported yet. */
function isReady(conditions: readonly Readonly<Record<string, unknown>>[]): boolean {
  let found = false
  for (const { type, status } of conditions) {
    if (type === 'Ready') {
      found = true
      if (status === 'False' || status === 'Unknown') return false
    }
    if (TROUBLES.has(textOf(type)) && status === 'True') return false
  }
  return found
}
