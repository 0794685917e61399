// Leader election on a Lease (coordination.k8s.io/v1), with client-go's semantics (tools/leaderelection): other machines' clocks are never compared
// with ours; what counts is how long ago we observed the Lease change.

import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { recordOf, textOf } from '../../kit/api/json/object-shape.ts'
import type { Clock, Logger } from '../../kit/api/ports.ts'
import { errorMessage } from '../../kit/api/validation/error-message.ts'
import { metaMicroTime } from '../../kit/core/text/meta-time.ts'
import { systemClock } from '../../kit/io/world/clock.ts'
import { LEASES } from '../api/kinds/lease-kind.ts'
import type { ObjectClient } from '../api/object-client.ts'
import { apiVersionOf } from '../api/resource-kind.ts'
import { StatusError } from '../api/status.ts'

export interface LeaseOptions {
  readonly namespace: string
  readonly name: string
  /** Unique among candidates, including this one before a restart. */
  readonly identity: string
  readonly log: Logger
  /** Called when leadership is acquired or lost. */
  readonly onChange?: (leader: boolean) => void
  /** A Lease unchanged for this long may be taken over. Default 15 s. */
  readonly leaseDurationMs?: number
  /** A leader that could not renew for this long stops leading; less than the duration. Default 10 s. */
  readonly renewDeadlineMs?: number
  /** Interval between attempts, up to 1.2 times that. Default 2 s. */
  readonly retryPeriodMs?: number
  readonly clock?: Clock
  /** In [0, 1). */
  readonly random?: () => number
}

export interface LeaderElection {
  /** True if no other candidate can be leader now, provided that clocks run equally fast. */
  isLeader(): boolean
  /** Releases the Lease, so that another candidate acquires it at once. */
  stop(): Promise<void>
}

export type LeaseClient = Pick<ObjectClient, 'get' | 'create' | 'update'>

interface LeaseRecord {
  readonly holderIdentity: string
  readonly leaseDurationSeconds: number
  readonly acquireTime: string
  readonly renewTime: string
  readonly leaseTransitions: number
}

const JITTER = 0.2

export function startLeaderElection(client: LeaseClient, options: LeaseOptions): LeaderElection {
  const candidate = new LeaseCandidate(client, options)
  const running = candidate.run()
  return {
    isLeader: () => candidate.isLeader(),
    stop: async () => {
      candidate.stop()
      await running
    },
  }
}

/** Identity of a candidate in this process. @param replica its name, which another process may share */
export function candidateIdentity(replica: string): string {
  return `${replica}_${randomUUID()}`
}

class LeaseCandidate {
  readonly #client: LeaseClient
  readonly #options: LeaseOptions
  readonly #clock: Clock
  readonly #random: () => number
  readonly #durationMs: number
  readonly #deadlineMs: number
  readonly #periodMs: number
  readonly #stopping = new AbortController()
  /** The Lease as last observed, and when that state was first observed: monotonic. */
  #seen: LeaseRecord | undefined
  #seenAt = 0
  /** When the last successful acquire or renewal was sent: monotonic; other candidates cannot count from an earlier time. */
  #renewedAt = Number.NEGATIVE_INFINITY
  #reported = false
  #fault = ''

  constructor(client: LeaseClient, options: LeaseOptions) {
    this.#client = client
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.#random = options.random ?? Math.random
    this.#durationMs = options.leaseDurationMs ?? 15_000
    this.#deadlineMs = options.renewDeadlineMs ?? 10_000
    this.#periodMs = options.retryPeriodMs ?? 2_000
  }

  /** Computed from the clock, so that a process that was suspended notices before doing anything else. */
  isLeader(): boolean {
    return this.#holds() && this.#clock.monotonic() - this.#renewedAt < this.#deadlineMs
  }

  stop(): void {
    this.#stopping.abort()
  }

  /** Never rejects. */
  async run(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      const expiry = this.#expiryTimer()
      await this.#attempt()
      clearTimeout(expiry)
      this.#report()
      const waitMs = this.#periodMs * (1 + this.#random() * JITTER)
      const again = this.#expiryTimer()
      await sleep(waitMs, undefined, { signal }).catch(() => undefined)
      clearTimeout(again)
      this.#report()
    }
    if (this.isLeader()) await this.#release()
    this.#seen = undefined
    this.#report()
  }

  /** Reports the loss of leadership when it happens, whatever is pending. */
  #expiryTimer(): NodeJS.Timeout | undefined {
    if (!this.isLeader()) return undefined
    const leftMs = this.#renewedAt + this.#deadlineMs - this.#clock.monotonic()
    return setTimeout(() => this.#report(), Math.max(0, leftMs) + 1)
  }

  async #attempt(): Promise<void> {
    try {
      await this.#acquireOrRenew()
      this.#fault = ''
    } catch (error) {
      // Another candidate won the update or creation (Conflict, AlreadyExists): not an error.
      if (error instanceof StatusError && error.code === 409) return
      const why = errorMessage(error)
      if (why === this.#fault) return
      this.#fault = why
      this.#options.log.warn('the lease cannot be read or written', { lease: this.#name(), why })
    }
  }

  async #acquireOrRenew(): Promise<void> {
    const { namespace, name } = this.#options
    let lease: JsonObject
    try {
      lease = await this.#client.get(LEASES, { namespace, name })
    } catch (error) {
      if (!(error instanceof StatusError) || error.code !== 404) throw error
      await this.#write(undefined, this.#record(undefined))
      return
    }
    const record = readRecord(lease)
    const now = this.#clock.monotonic()
    if (this.#seen === undefined || !equal(this.#seen, record)) {
      this.#seen = record
      this.#seenAt = now
    }
    const free = record.holderIdentity === ''
    if (!free && !this.#holds() && now - this.#seenAt < record.leaseDurationSeconds * 1000) return
    await this.#write(lease, this.#record(record))
  }

  /** @param before undefined = there is no Lease */
  async #write(before: JsonObject | undefined, record: LeaseRecord): Promise<void> {
    const { namespace, name } = this.#options
    const sentAt = this.#clock.monotonic()
    if (before === undefined) {
      const head = { apiVersion: apiVersionOf(LEASES), kind: LEASES.kind, metadata: { name, namespace } }
      await this.#client.create(LEASES, { ...head, spec: record })
    } else {
      const spec = recordOf(before['spec'])
      await this.#client.update(LEASES, { ...before, spec: { ...spec, ...record } })
    }
    this.#seen = record
    this.#seenAt = sentAt
    this.#renewedAt = sentAt
  }

  #record(before: LeaseRecord | undefined): LeaseRecord {
    const { identity } = this.#options
    const now = metaMicroTime(this.#clock.now())
    const isOurs = before?.holderIdentity === identity
    return {
      holderIdentity: identity,
      leaseDurationSeconds: Math.max(1, Math.ceil(this.#durationMs / 1000)),
      acquireTime: isOurs ? before.acquireTime : now,
      renewTime: now,
      leaseTransitions: (before?.leaseTransitions ?? 0) + (isOurs || before === undefined ? 0 : 1),
    }
  }

  async #release(): Promise<void> {
    const { namespace, name } = this.#options
    try {
      const lease = await this.#client.get(LEASES, { namespace, name })
      const record = readRecord(lease)
      if (record.holderIdentity !== this.#options.identity) return
      const now = metaMicroTime(this.#clock.now())
      const given = { ...record, holderIdentity: '', leaseDurationSeconds: 1, renewTime: now, acquireTime: now }
      await this.#write(lease, given)
    } catch {
      // It expires on its own.
    }
  }

  #holds(): boolean {
    return this.#seen?.holderIdentity === this.#options.identity
  }

  #report(): void {
    const leader = this.isLeader()
    if (leader === this.#reported) return
    this.#reported = leader
    const { identity, log, onChange } = this.#options
    const holder = this.#seen?.holderIdentity ?? ''
    log.info(leader ? 'became leader' : 'stopped leading', {
      lease: this.#name(),
      identity,
      ...(!leader && { holder }),
    })
    try {
      onChange?.(leader)
    } catch (error) {
      log.error('a change of leadership could not be handled', { lease: this.#name(), error })
    }
  }

  #name(): string {
    return `${this.#options.namespace}/${this.#options.name}`
  }
}

function readRecord(lease: JsonObject): LeaseRecord {
  const spec = recordOf(lease['spec'])
  const count = (value: unknown): number => (typeof value === 'number' && value > 0 ? value : 0)
  return {
    holderIdentity: textOf(spec['holderIdentity']),
    leaseDurationSeconds: count(spec['leaseDurationSeconds']),
    acquireTime: textOf(spec['acquireTime']),
    renewTime: textOf(spec['renewTime']),
    leaseTransitions: count(spec['leaseTransitions']),
  }
}

function equal(a: LeaseRecord, b: LeaseRecord): boolean {
  return (
    a.holderIdentity === b.holderIdentity &&
    a.leaseDurationSeconds === b.leaseDurationSeconds &&
    a.acquireTime === b.acquireTime &&
    a.renewTime === b.renewTime &&
    a.leaseTransitions === b.leaseTransitions
  )
}
