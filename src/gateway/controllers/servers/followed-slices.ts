// Follows the `kubernetes` EndpointSlices of clusters with spec.followEndpointSlice, through their own endpoints, and recompiles the
// cluster when the addresses change. A lost watch and slices without an address change nothing.

import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { recordOf } from '../../../kit/api/json/object-shape.ts'
import type { Clock, Logger } from '../../../kit/api/ports.ts'
import { ENDPOINT_SLICES } from '../../../kube/api/kinds/foreign-kinds.ts'
import type { ClosableClient } from '../../../kube/api/object-client.ts'
import { Informer } from '../../../kube/controllers/kernel/informer.ts'
import { SEEDS } from '../../core/cluster/compile-settings.ts'
import { type SliceAddresses, sliceAddresses } from '../../core/endpoints/slice-addresses.ts'
import type { ServerFact } from '../../core/status/status-facts.ts'
import type { LiveCluster } from '../../state/clusters.ts'
import { SettlingAddresses } from './settling-addresses.ts'

interface FollowedSlicesDeps {
  readonly cluster: string
  readonly client: ClosableClient
  readonly clusters: { get(name: string): LiveCluster | undefined }
  readonly clock: Pick<Clock, 'monotonic'>
  readonly log: Logger
  /** Addresses in force have changed. */
  onChange(): void
}

/** Replaces the server name in conditions and metrics. */
const SLICE_NAME = 'EndpointSlice default/kubernetes'
const NAMESPACE = 'default'
const LABEL_SELECTOR = 'kubernetes.io/service-name=kubernetes'
/** A cluster has one or two; limits other objects with the same label. */
const MAX_SLICES = 100
/** Characters: it becomes part of the cluster's status. */
const MAX_MESSAGE = 500

export class FollowedSlices {
  readonly #deps: FollowedSlicesDeps
  readonly #counts: LookUpCounts = { found: 0, empty: 0, error: 0 }
  readonly #addresses: SettlingAddresses
  readonly #slices: Informer<JsonObject>
  #known: SliceAddresses = { addresses: [], omitted: 0, message: '' }
  /** Problem of the newest slices. */
  #message = ''
  /** Problem of the watch; '' = it runs. */
  #fault = ''

  constructor(deps: FollowedSlicesDeps) {
    this.#deps = deps
    const { cluster, client, clock, log, onChange } = deps
    this.#addresses = new SettlingAddresses({
      before: SEEDS,
      isHealthy: (address) => this.#isHealthy(address),
      clock,
      onChange: (addresses) => {
        log.info('the addresses of an EndpointSlice have changed', { cluster, addresses: addresses.filter(Boolean) })
        onChange()
      },
    })
    this.#slices = new Informer<JsonObject>({
      client,
      kind: ENDPOINT_SLICES,
      namespace: NAMESPACE,
      choice: { labelSelector: LABEL_SELECTOR, transform: slimSlice },
      keep: (slice, before) => (before !== undefined || this.#slices.objects.size < MAX_SLICES ? slice : undefined),
      onChange: () => this.#read(),
      onState: (current, message) => this.#onState(current, message),
    })
  }

  /** Includes SEEDS while the previous ones are still in use. Empty = unknown. */
  get inForce(): readonly string[] {
    return this.#addresses.inForce
  }

  get state(): FollowedServerState {
    const { addresses, omitted } = this.#known
    const message = [this.#fault, this.#message].filter((text) => text !== '').join('; ')
    return { cluster: this.#deps.cluster, server: SLICE_NAME, addresses, omitted, message, counts: this.#counts }
  }

  async stop(): Promise<void> {
    this.#addresses.stop()
    await this.#slices.stop()
    await this.#deps.client.close()
  }

  #onState(current: boolean, said: string): void {
    const fault = current ? '' : said.slice(0, MAX_MESSAGE).replaceAll(/\p{C}/gu, ' ')
    const { log, cluster } = this.#deps
    if (!current) {
      this.#counts.error++
      if (fault !== this.#fault)
        log.warn('an EndpointSlice cannot be watched; the addresses known stay in use', { cluster, reason: fault })
    }
    this.#fault = fault
  }

  #read(): void {
    const read = sliceAddresses([...this.#slices.objects.values()])
    const { log, cluster } = this.#deps
    if (read.message !== '' && read.message !== this.#message) {
      log.warn('an EndpointSlice has addresses that are not used', { cluster, reason: read.message })
    }
    this.#message = read.message
    if (read.addresses.length === 0) {
      this.#counts.empty++
      return
    }
    this.#counts.found++
    this.#known = read
    this.#addresses.want(read.addresses)
  }

  #isHealthy(address: string): boolean {
    const all = this.#deps.clusters.get(this.#deps.cluster)?.endpoints.all ?? []
    return all.some(({ compiled: { host, port, backup }, health, enabled }) => {
      if (backup === true || `${host.includes(':') ? `[${host}]` : host}:${port}` !== address) return false
      return health.state === 'healthy' || !enabled
    })
  }
}

/** Drops names and zones of endpoints, and managed fields. */
function slimSlice(slice: JsonObject): JsonObject {
  const { name, namespace, uid, resourceVersion } = recordOf(slice['metadata'])
  return { ...slice, metadata: { name, namespace, uid, resourceVersion } } as JsonObject
}

/** Results of the look-ups of one server. */
export interface LookUpCounts {
  found: number
  /** Neither an address nor an error. */
  empty: number
  error: number
}

/** State of a server whose addresses are followed. */
export interface FollowedServerState extends ServerFact {
  readonly cluster: string
  readonly counts: Readonly<LookUpCounts>
}
