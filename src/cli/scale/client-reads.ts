// What choosing victims reads, with the credential of whoever asks.

import type { JsonObject } from '../../api/kube/json-object.ts'
import { isRecord, recordOf, textOf } from '../../api/kube/object-shape.ts'
import { StatusError } from '../../api/kube/status.ts'
import type { ObjectClient } from '../../api/ports/object-client.ts'
import { errorMessage } from '../../api/validation/error-message.ts'
import { type ClusterReads, type ReadAnswer, UnavailableError } from '../../core/scale/victim-choice/cluster-reads.ts'

const PAGE_SIZE = 500

export class ClientReads implements ClusterReads {
  readonly #client: ObjectClient

  constructor(client: ObjectClient) {
    this.#client = client
  }

  async ask(path: string): Promise<ReadAnswer> {
    if (this.#client.read === undefined) throw new UnavailableError('this client reads objects only')
    try {
      return { object: await this.#client.read(path) }
    } catch (error) {
      if (error instanceof StatusError) return { status: error.code, why: error.message }
      throw new UnavailableError(errorMessage(error))
    }
  }

  async get(path: string): Promise<JsonObject | undefined> {
    const answer = await this.ask(path)
    if ('object' in answer) return answer.object
    if (answer.status === 404) return undefined
    throw new UnavailableError(answer.why)
  }

  async list(path: string, query: string, most: number): Promise<readonly JsonObject[]> {
    const found: JsonObject[] = []
    let next = ''
    do {
      const more = next === '' ? '' : `&continue=${encodeURIComponent(next)}`
      const answer = await this.ask(`${path}?limit=${PAGE_SIZE}&${query}${more}`)
      if (!('object' in answer)) throw new UnavailableError(answer.why)
      const { items, metadata } = answer.object
      for (const item of Array.isArray(items) ? (items as readonly unknown[]) : []) if (isRecord(item)) found.push(item)
      next = textOf(recordOf(metadata)['continue'])
      if (found.length > most || (found.length === most && next !== '')) {
        throw new UnavailableError(`there are more than ${most} at ${path}`)
      }
    } while (next !== '')
    return found
  }
}
