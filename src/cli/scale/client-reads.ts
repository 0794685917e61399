// What choosing victims reads, with the credential of whoever asks.

import type { JsonObject } from '../../api/kube/json-object.ts'
import { isRecord, recordOf, textOf } from '../../api/kube/object-shape.ts'
import { StatusError } from '../../api/kube/status.ts'
import type { ObjectClient } from '../../api/ports/object-client.ts'
import { errorMessage } from '../../api/validation/error-message.ts'
import { type ClusterReads, UnavailableError } from '../../core/scale/victim-choice/cluster-reads.ts'

const PAGE_SIZE = 500

export class ClientReads implements ClusterReads {
  readonly #client: ObjectClient

  constructor(client: ObjectClient) {
    this.#client = client
  }

  async get(path: string): Promise<JsonObject | undefined> {
    try {
      return await this.#read(path)
    } catch (error) {
      if (error instanceof StatusError && error.code === 404) return undefined
      throw unavailable(error)
    }
  }

  #read(path: string): Promise<JsonObject> {
    if (this.#client.read === undefined) throw new UnavailableError('this client reads objects only')
    return this.#client.read(path)
  }

  async list(path: string, query: string, most: number): Promise<readonly JsonObject[]> {
    const found: JsonObject[] = []
    let next = ''
    do {
      const more = next === '' ? '' : `&continue=${encodeURIComponent(next)}`
      const page = await this.#read(`${path}?limit=${PAGE_SIZE}&${query}${more}`).catch((error: unknown) => {
        throw unavailable(error)
      })
      const { items, metadata } = page
      for (const item of Array.isArray(items) ? (items as readonly unknown[]) : []) if (isRecord(item)) found.push(item)
      next = textOf(recordOf(metadata)['continue'])
      if (found.length > most || (found.length === most && next !== '')) {
        throw new UnavailableError(`there are more than ${most} at ${path}`)
      }
    } while (next !== '')
    return found
  }
}

function unavailable(error: unknown): UnavailableError {
  return error instanceof UnavailableError ? error : new UnavailableError(errorMessage(error))
}
