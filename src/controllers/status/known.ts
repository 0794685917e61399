// The UpstreamClusters as the API server gives them, with what has been written to each.

import { type JsonObject, nameOf } from '../../api/kube/json-object.ts'
import type { ClientsSeen, GatewayProtection, UpstreamClusterStatus } from '../../api/upstream-cluster/status.ts'
import { generationOf, uidOf } from './objects.ts'

/** What is known of one object. */
export interface KnownCluster {
  object: JsonObject
  generation: number
  /** When this generation was first seen: monotonic milliseconds. */
  seenAtMs: number
  /** The status written last, and what the server returned. */
  wanted: UpstreamClusterStatus | undefined
  answered: unknown
  /** `liveSignature` as of the last sweep. */
  signature: string
  /** The shared-limits message in this replica's entry. */
  limitsMessage: string
  /** The pod protection state in this replica's entry. */
  podProtection: GatewayProtection | undefined
  /** The clients in this replica's entry. */
  lastSeen: ClientsSeen | undefined
  /** The refused disruptive requests in this replica's entry. */
  refused: number
}

export class KnownClusters {
  readonly #all = new Map<string, KnownCluster>()

  get size(): number {
    return this.#all.size
  }

  get(name: string): KnownCluster | undefined {
    return this.#all.get(name)
  }

  has(name: string): boolean {
    return this.#all.has(name)
  }

  names(): MapIterator<string> {
    return this.#all.keys()
  }

  /** Includes clusters added during the iteration. */
  entries(): MapIterator<[string, KnownCluster]> {
    return this.#all.entries()
  }

  /** @param nowMs monotonic milliseconds */
  learn(object: JsonObject, nowMs: number): void {
    const name = nameOf(object)
    const generation = generationOf(object)
    const known = this.#all.get(name)
    if (known === undefined || uidOf(known.object) !== uidOf(object)) {
      this.#all.set(name, {
        object,
        generation,
        seenAtMs: nowMs,
        wanted: undefined,
        answered: undefined,
        signature: '',
        limitsMessage: '',
        podProtection: undefined,
        lastSeen: undefined,
        refused: 0,
      })
      return
    }
    known.object = object
    if (known.generation === generation) return
    known.generation = generation
    known.seenAtMs = nowMs
  }

  forget(name: string): void {
    this.#all.delete(name)
  }
}
