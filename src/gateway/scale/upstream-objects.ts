// The gateway's own reads and patches for a scale-down, each in the turn of whoever scales, and all of them within one deadline.

import type { JsonObject } from '../../api/kube/json-object.ts'
import { isRecord } from '../../api/kube/object-shape.ts'
import { type AnswerLimits, OBJECT } from '../../core/answers/answer-limits.ts'
import { KubeCallError } from '../../core/answers/call-errors.ts'
import { heldBytes, withoutBulk } from '../../core/answers/held-bytes.ts'
import { itemsOf, listPages, type ReadPage } from '../../core/answers/paged-list.ts'
import { type ClusterReads, type ReadAnswer, UnavailableError } from '../../core/scale/victim-choice/cluster-reads.ts'
import type { KubeAnswer } from '../../io/upstream/kube-call.ts'
import { type CallAsGateway, callAsGateway, refusalOf } from '../calls/call-as-gateway.ts'
import type { Decision } from '../exchange/decision.ts'
import { keepAnswer } from '../exchange/kept-answers.ts'

type OneCall = Pick<CallAsGateway, 'method' | 'path' | 'body' | 'contentType'> & Partial<Pick<CallAsGateway, 'limits'>>

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
    return await orUnavailable(() => this.#call(call))
  }

  /** @throws {UnavailableError} @throws {KubeCallError} */
  #call(call: OneCall): Promise<KubeAnswer> {
    const { exchange, live } = this.#decision
    const timeoutMs = this.leftMs
    if (timeoutMs <= 0) throw new UnavailableError('it took too long (maxDelayMillis)')
    const { gw, charge } = exchange
    return callAsGateway(gw, live, { kind: 'scale-read', charge, timeoutMs, limits: OBJECT, ...call })
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

  async ask(path: string, limits: AnswerLimits): Promise<ReadAnswer> {
    const answer = await this.call({ method: 'GET', path, limits })
    if (answer.status === 200) return { object: objectOf(answer) }
    return { status: answer.status, why: refusalOf(answer) }
  }

  /**
   * What decides of each (withoutBulk), kept for as long as the request.
   * @param query behind the question mark
   * @throws {UnavailableError} also when there are more than `most`
   */
  async list(path: string, query: string, most: number): Promise<readonly JsonObject[]> {
    const read: ReadPage = async (limit, next, limits) => {
      const more = next === '' ? '' : `&continue=${encodeURIComponent(next)}`
      const answer = await this.#call({ method: 'GET', path: `${path}?limit=${limit}&${query}${more}`, limits })
      if (answer.status !== 200) throw new UnavailableError(`${path} cannot be listed: ${refusalOf(answer)}`)
      return objectOf(answer)
    }
    return await orUnavailable(async () => {
      const found: JsonObject[] = []
      // One more, so that it is seen that there are more.
      for await (const page of listPages(read, most + 1)) {
        const objects = itemsOf(page).filter(isRecord).map(withoutBulk)
        keepAnswer(this.#decision.exchange, heldBytes(objects))
        for (const object of objects) found.push(object)
        if (found.length > most) throw new UnavailableError(`there are more than ${most} at ${path}`)
      }
      return found
    })
  }
}

async function orUnavailable<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call()
  } catch (error) {
    if (error instanceof KubeCallError) throw new UnavailableError(error.message)
    throw error
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
