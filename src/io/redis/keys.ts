// Names of keys in Redis. They include a version, so that two versions that count differently share nothing.

import { createHash } from 'node:crypto'

const VERSION = 'v1'
const LONGEST = 128
const PLAIN = /^[\w./-]+$/

export class RedisKeys {
  readonly #prefix: string

  /** @param prefix separates several installations in one Redis */
  constructor(prefix: string) {
    this.#prefix = `${prefix}:${VERSION}`
  }

  /** Who is alive. */
  get replicas(): string {
    return `${this.#prefix}:replicas`
  }

  /** The prefix that RateLimiterRedis puts before the name of a bucket. */
  get buckets(): string {
    return `${this.#prefix}:bucket`
  }

  leases(cluster: string, schema: string): string {
    return `${this.#prefix}:leases:${limitName(cluster, schema)}`
  }
}

/** Names of clusters have no slash; names of schemas may be any text of any length. */
export function limitName(cluster: string, schema: string): string {
  const name = `${cluster}/${schema}`
  if (name.length <= LONGEST && PLAIN.test(name)) return name
  return `#${createHash('sha256').update(name).digest('hex')}`
}
