// Which replicas are alive: each renews its own Lease, and counts as dead after the Lease's duration without a renewal. Measured by the
// local clock from the last observed change, so that clock skew does no harm (as in client-go's leader election).

import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { recordOf } from '../../../kit/api/json/object-shape.ts'
import type { Clock, Logger } from '../../../kit/api/ports.ts'
import { errorMessage } from '../../../kit/api/validation/error-message.ts'
import { metaMicroTime } from '../../../kit/core/text/meta-time.ts'
import { LEASES } from '../../../kube/api/kinds/lease-kind.ts'
import type { ObjectClient } from '../../../kube/api/object-client.ts'
import { StatusError } from '../../../kube/api/status.ts'
import {
  REPLICA_LABEL_SELECTOR,
  REPLICA_LEASE_SECONDS,
  REPLICA_NAMESPACES,
  readReplicaLease,
  replicaLease,
  replicaLeaseName,
} from '../../core/status/gateways.ts'

const BEAT_MS = 10_000
const GONE_MS = REPLICA_LEASE_SECONDS * 1000
/** How long a list of the Leases is considered current. */
const FRESH_MS = 2 * BEAT_MS

interface ObservedLease {
  renewTime: string
  /** When it last changed, monotonic milliseconds. */
  atMs: number
}

export class ReplicaLeases {
  readonly #client: ObjectClient
  readonly #replica: string
  readonly #clock: Clock
  readonly #log: Logger
  readonly #beatMs: number
  readonly #adminAddress: string
  readonly #heard = new Map<string, ObservedLease>()
  #seenAtMs = Number.NEGATIVE_INFINITY
  #namespace: string | undefined
  #lease: JsonObject | undefined
  #timer: NodeJS.Timeout | undefined
  #beating: Promise<void> = Promise.resolve()
  #stopped = false
  #failing = false

  /**
   * @param beatMs between two renewals; default 10 s, a third of the Lease
   * @param adminAddress where other replicas reach the admin listener; '' = nowhere
   */
  constructor(
    client: ObjectClient,
    replica: string,
    clock: Clock,
    log: Logger,
    beatMs: number = BEAT_MS,
    adminAddress = '',
  ) {
    this.#adminAddress = adminAddress
    this.#client = client
    this.#replica = replica
    this.#clock = clock
    this.#log = log
    this.#beatMs = beatMs
  }

  /** Resolves after the first attempt, successful or not. */
  start(): Promise<void> {
    this.#beating = this.#beat()
    return this.#beating
  }

  /** Deletes the Lease, so that the others need not wait for it to expire. */
  async stop(): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    await this.#beating
    if (this.#namespace === undefined || this.#lease === undefined) return
    const at = { namespace: this.#namespace, name: replicaLeaseName(this.#replica) }
    await this.#client.delete(LEASES, at).catch(() => undefined)
  }

  /** false while the list of Leases is stale; a name seen for the first time gets the duration of a Lease. */
  isGone(replica: string): boolean {
    const nowMs = this.#clock.monotonic()
    if (replica === this.#replica || nowMs - this.#seenAtMs > FRESH_MS) return false
    const heard = this.#heard.get(replica)
    if (heard === undefined) {
      this.#heard.set(replica, { renewTime: '', atMs: nowMs })
      return false
    }
    return nowMs - heard.atMs > GONE_MS
  }

  async #beat(): Promise<void> {
    try {
      await this.#renew()
      await this.#look()
      if (this.#failing) this.#log.info('the Lease of this replica is renewed again', { replica: this.#replica })
      this.#failing = false
    } catch (error) {
      if (!this.#failing) {
        const reason = errorMessage(error)
        this.#log.warn('the Lease of this replica cannot be renewed', { replica: this.#replica, reason })
      }
      this.#failing = true
    }
    if (this.#stopped) return
    this.#timer = setTimeout(() => {
      this.#beating = this.#beat()
    }, this.#beatMs)
    this.#timer.unref()
  }

  async #renew(): Promise<void> {
    const now = metaMicroTime(this.#clock.now())
    if (this.#lease !== undefined) {
      try {
        const spec = { ...(this.#lease['spec'] as object), renewTime: now }
        this.#lease = await this.#client.update(LEASES, { ...this.#lease, spec })
        return
      } catch (error) {
        if (!(error instanceof StatusError) || (error.code !== 404 && error.code !== 409)) throw error
        this.#lease = undefined
      }
    }
    const namespaces = this.#namespace === undefined ? REPLICA_NAMESPACES : [this.#namespace]
    for (const namespace of namespaces) {
      this.#lease = await this.#take(namespace, now)
      if (this.#lease === undefined) continue
      this.#namespace = namespace
      return
    }
    this.#namespace = undefined
    throw new Error(`neither namespace exists: ${REPLICA_NAMESPACES.join(', ')}`)
  }

  /** undefined = the namespace doesn't exist. */
  async #take(namespace: string, now: string): Promise<JsonObject | undefined> {
    const wanted = replicaLease(this.#replica, namespace, now, this.#adminAddress)
    try {
      return await this.#client.create(LEASES, wanted)
    } catch (error) {
      if (!(error instanceof StatusError)) throw error
      if (error.code === 404) return undefined
      if (error.reason !== 'AlreadyExists') throw error
    }
    // Left from an earlier run of this replica, or owned by another replica of the same name: then both renew it in turn.
    const name = replicaLeaseName(this.#replica)
    const known = await this.#client.get(LEASES, { namespace, name })
    // Keeps others' annotations; the address of the admin listener may have changed.
    const metadata = { ...(known['metadata'] as object), annotations: annotationsOf(wanted, known) }
    return await this.#client.update(LEASES, { ...known, metadata, spec: wanted['spec'] })
  }

  async #look(): Promise<void> {
    const nowMs = this.#clock.monotonic()
    for (const namespace of REPLICA_NAMESPACES) {
      const { items } = await this.#client.list(LEASES, namespace, REPLICA_LABEL_SELECTOR)
      for (const item of items) this.#hear(item, nowMs)
    }
    this.#seenAtMs = nowMs
    for (const [replica, { atMs }] of this.#heard) if (nowMs - atMs > 2 * GONE_MS) this.#heard.delete(replica)
  }

  #hear(object: JsonObject, nowMs: number): void {
    const lease = readReplicaLease(object)
    if (lease === undefined) return
    const heard = this.#heard.get(lease.replica)
    if (heard === undefined) this.#heard.set(lease.replica, { renewTime: lease.renewTime, atMs: nowMs })
    else if (heard.renewTime !== lease.renewTime) {
      heard.renewTime = lease.renewTime
      heard.atMs = nowMs
    }
  }
}

/** Merges both; the first takes precedence. */
function annotationsOf(wanted: JsonObject, known: JsonObject): object {
  const of = (object: JsonObject): object => Object(recordOf(object['metadata'])['annotations'] ?? {})
  return { ...of(known), ...of(wanted) }
}
