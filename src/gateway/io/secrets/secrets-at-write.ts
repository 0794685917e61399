// Reads the Secrets that an object under review refers to, for that review: a webhook only knows those of stored objects.

import { SECRETS } from '../../../kube/api/kinds/secret-kind.ts'
import type { ObjectClient } from '../../../kube/api/object-client.ts'
import { StatusError } from '../../../kube/api/status.ts'
import { type SecretAtWrite, secretsNamed } from './references-at-write.ts'

/** kube-apiserver waits 10 s for the response by default; the reads must not use that up. */
const TIMEOUT_MS = 2_000
/** Concurrent reads over all reviews: every client that reaches the webhook can trigger reads. Those beyond the limit are skipped. */
const MOST_READS = 32

export class SecretsAtWrite {
  readonly #client: ObjectClient
  #reading = 0

  constructor(client: ObjectClient) {
    this.#client = client
  }

  /** Never rejects. Results by namespace and name; whatever could not be read in time is `unknown`. */
  async read(object: unknown): Promise<(namespace: string, name: string) => SecretAtWrite> {
    const found = new Map<string, SecretAtWrite>()
    await Promise.all(
      secretsNamed(object).map(async ({ namespace, name }) => {
        found.set(`${namespace}/${name}`, await this.#one(namespace, name))
      }),
    )
    return (namespace, name) => {
      const key = `${namespace}/${name}`
      return found.has(key) ? found.get(key) : 'unknown'
    }
  }

  async #one(namespace: string, name: string): Promise<SecretAtWrite> {
    if (this.#reading >= MOST_READS) return 'unknown'
    this.#reading++
    const reading = this.#client
      .get(SECRETS, { namespace, name })
      .catch((error: unknown) =>
        error instanceof StatusError && error.code === 404 ? undefined : ('unknown' as const),
      )
      .finally(() => this.#reading--)
    let late: NodeJS.Timeout | undefined
    const timeout = new Promise<'unknown'>((resolve) => {
      late = setTimeout(resolve, TIMEOUT_MS, 'unknown')
    })
    const outcome = await Promise.race([reading, timeout])
    clearTimeout(late)
    return outcome
  }
}
