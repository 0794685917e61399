// What the victims of a scale-down are chosen by, read within one deadline for all of it.

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
    // Without its name: who scales may not be allowed to list pods or nodes.
    throw unavailable(found, `an object at ${path.slice(0, path.lastIndexOf('/'))} cannot be read`)
  }

  /** A merge patch. @returns the object afterwards; what upstream says instead is for the caller to look at */
  async patch(path: string, body: string): Promise<JsonObject | 'absent' | 'conflict'> {
    const found = await this.#upstream.patch(path, body)
    if (found.kind === 'found') return found.value
    if (found.kind === 'absent') return 'absent'
    if (found.kind === 'unknown' && found.answered?.status === 409) return 'conflict'
    // As above.
    throw unavailable(found, 'a pod cannot be patched')
  }

  /** What decides of each (withoutBulk), kept for as long as the request. */
  async list(path: string, query: string, most: number): Promise<readonly JsonObject[]> {
    // One more, so that it is seen that there are more.
    const found = await this.#upstream.list(path, query, most + 1, withoutBulks)
    if (found.kind !== 'found') throw unavailable(found, `${path} cannot be listed`)
    const { items } = found.value
    if (items.length > most) throw new UnavailableError(`there are more than ${most} at ${path}`)
    return items
  }
}

/** Of the objects among them, what decides about them. */
export function withoutBulks(items: readonly unknown[]): readonly JsonObject[] {
  return items.filter(isRecord).map(withoutBulk)
}

/** @param what is not done, where upstream gave an answer that says so */
function unavailable(found: Unknown | Limited, what: string): UnavailableError {
  const answered = found.kind === 'unknown' && found.answered !== undefined
  return new UnavailableError(answered ? `${what}: ${found.why}` : found.why)
}
