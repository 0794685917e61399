// The gateway's own reads and patches for a scale-down, each in the turn of whoever scales, and all of them within one deadline.

import type { JsonObject } from '../../api/kube/json-object.ts'
import { isRecord, recordOf, textOf } from '../../api/kube/object-shape.ts'
import { type ClusterReads, type ReadAnswer, UnavailableError } from '../../core/scale/victim-choice/cluster-reads.ts'
import { type KubeAnswer, KubeCallError } from '../../io/upstream/kube-call.ts'
import { type CallAsGateway, callAsGateway, refusalOf } from '../calls/call-as-gateway.ts'
import type { Decision } from '../exchange/decision.ts'

/** Of a page of objects. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024
const PAGE_SIZE = 500

type OneCall = Pick<CallAsGateway, 'method' | 'path' | 'body' | 'contentType'> &
  Partial<Pick<CallAsGateway, 'maxAnswerBytes'>>

export class UpstreamObjects implements ClusterReads {
  readonly #decision: Decision
  readonly #deadlineMs: number

  /** @param deadlineMs monotonic */
  constructor(decision: Decision, deadlineMs: number) {
    this.#decision = decision
    this.#deadlineMs = deadlineMs
  }

  get leftMs(): number {
    return this.#deadlineMs - this.#decision.exchange.gw.clock.monotonic()
  }

  /** @throws {UnavailableError} */
  async call(call: OneCall): Promise<KubeAnswer> {
    const { exchange, live } = this.#decision
    const timeoutMs = this.leftMs
    if (timeoutMs <= 0) throw new UnavailableError('it took too long (maxDelayMillis)')
    const limits = { timeoutMs, maxAnswerBytes: MAX_ANSWER_BYTES }
    try {
      return await callAsGateway(exchange.gw, live, { kind: 'scale-read', charge: exchange.charge, ...limits, ...call })
    } catch (error) {
      if (error instanceof KubeCallError) throw new UnavailableError(error.message)
      throw error
    }
  }

  /** @returns undefined when there is none. @throws {UnavailableError} */
  async get(path: string): Promise<JsonObject | undefined> {
    const answer = await this.call({ method: 'GET', path })
    if (answer.status === 404) return undefined
    if (answer.status === 200) return objectOf(answer)
    // Without its name: who scales may not be allowed to list pods or nodes.
    const collection = path.slice(0, path.lastIndexOf('/'))
    throw new UnavailableError(`an object at ${collection} cannot be read: ${refusalOf(answer)}`)
  }

  async ask(path: string, maxAnswerBytes: number): Promise<ReadAnswer> {
    const answer = await this.call({ method: 'GET', path, maxAnswerBytes })
    if (answer.status === 200) return { object: objectOf(answer) }
    return { status: answer.status, why: refusalOf(answer) }
  }

  /**
   * @param query behind the question mark
   * @throws {UnavailableError} also when there are more than `most`
   */
  async list(path: string, query: string, most: number): Promise<readonly JsonObject[]> {
    const found: JsonObject[] = []
    let next = ''
    do {
      const more = next === '' ? '' : `&continue=${encodeURIComponent(next)}`
      const answer = await this.call({ method: 'GET', path: `${path}?limit=${PAGE_SIZE}&${query}${more}` })
      if (answer.status !== 200) throw new UnavailableError(`${path} cannot be listed: ${refusalOf(answer)}`)
      const { items, metadata } = objectOf(answer)
      for (const item of Array.isArray(items) ? (items as readonly unknown[]) : []) if (isRecord(item)) found.push(item)
      next = textOf(recordOf(metadata)['continue'])
      if (found.length > most || (found.length === most && next !== '')) {
        throw new UnavailableError(`there are more than ${most} at ${path}`)
      }
    } while (next !== '')
    return found
  }
}

/** @throws {UnavailableError} */
export function objectOf({ body }: KubeAnswer): JsonObject {
  try {
    const object: unknown = JSON.parse(body)
    if (isRecord(object)) return object
  } catch {
    // Said below.
  }
  throw new UnavailableError('an answer of upstream is not an object')
}
