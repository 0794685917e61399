// Reads the objects used to choose the victims of a scale-down, within one deadline for all reads.

import { type Limited, type Unknown, UpstreamReader } from '../../gateway/request/calls/upstream-reader.ts'
import type { Decision } from '../../gateway/request/exchange/decision.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { isRecord } from '../../kit/api/json/object-shape.ts'
import { KubeCallError } from '../../kube/core/answers/call-errors.ts'
import { withoutBulk } from '../../kube/core/answers/held-bytes.ts'
import { type ClusterReads, UnavailableError } from '../core/victim-choice/cluster-reads.ts'

export class UpstreamObjects implements ClusterReads {
  readonly #decision: Decision
  readonly #deadlineMs: number
  readonly #upstream: UpstreamReader

  /** @param deadlineMs monotonic */
  constructor(decision: Decision, deadlineMs: number) {
    this.#decision = decision
    this.#deadlineMs = deadlineMs
    this.#upstream = new UpstreamReader(decision, 'scale-read', () => this.#timeoutMs())
  }

  get leftMs(): number {
    return this.#deadlineMs - this.#decision.exchange.gw.clock.monotonic()
  }

  #timeoutMs(): number {
    const { leftMs } = this
    if (leftMs <= 0) throw new KubeCallError('it took too long (maxDelayMillis)')
    return leftMs
  }

  async get(path: string): Promise<JsonObject | undefined> {
    const found = await this.#upstream.get(path)
    if (found.kind === 'found') return found.value
    if (found.kind === 'absent') return undefined
    // Without its name: the caller may not be allowed to list pods or nodes.
    throw unavailable(found, `an object at ${path.slice(0, path.lastIndexOf('/'))} cannot be read`)
  }

  /** Sends a merge patch. @returns the patched object; the caller handles other outcomes */
  async patch(path: string, body: string): Promise<JsonObject | 'absent' | 'conflict'> {
    const found = await this.#upstream.patch(path, body)
    if (found.kind === 'found') return found.value
    if (found.kind === 'absent') return 'absent'
    if (found.kind === 'unknown' && found.answered?.status === 409) return 'conflict'
    // Without its name, as above.
    throw unavailable(found, 'a pod cannot be patched')
  }

  /** Keeps only the relevant fields (withoutBulk), for the lifetime of the request. */
  async list(path: string, query: string, most: number): Promise<readonly JsonObject[]> {
    // One more than the limit, to detect that there are more.
    const found = await this.#upstream.list(path, query, most + 1, withoutBulks)
    if (found.kind !== 'found') throw unavailable(found, `${path} cannot be listed`)
    const { items } = found.value
    if (items.length > most) throw new UnavailableError(`there are more than ${most} at ${path}`)
    return items
  }
}

/** The relevant fields of those items that are objects. */
export function withoutBulks(items: readonly unknown[]): readonly JsonObject[] {
  return items.filter(isRecord).map(withoutBulk)
}

/** @param what could not be done, if upstream's answer says so */
function unavailable(found: Unknown | Limited, what: string): UnavailableError {
  const answered = found.kind === 'unknown' && found.answered !== undefined
  return new UnavailableError(answered ? `${what}: ${found.why}` : found.why)
}
