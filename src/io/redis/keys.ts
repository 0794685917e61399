// Names of keys in Redis. They include a version, so that two versions that count differently share nothing.

import { createHash } from 'node:crypto'

const VERSION = 'v1'
const LONGEST = 128
const PLAIN = /^[\w./-]+$/

export class RedisKeys {
  readonly #prefix: string

  /**
   * @param prefix separates several installations in one Redis
   * @param together keeps all keys in one slot of a Redis Cluster: limits and the list of who is alive, by which replicas return to
   *   sharing them, then fail and come back together
   */
  constructor(prefix: string, together = false) {
    this.#prefix = `${together ? `{${prefix}}` : prefix}:${VERSION}`
  }

  /** Who is alive. */
  get replicas(): string {
    return `${this.#prefix}:replicas`
  }

  /** The prefix that RateLimiterRedis puts before the name of a bucket. */
  get buckets(): string {
    return `${this.#prefix}:bucket`
  }

  /** The prefix that RateLimiterRedis puts before what is counted. */
  counter(name: string): string {
    return `${this.#prefix}:${name}`
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

/** The slot of a key in a Redis Cluster: CRC16/XMODEM of the part in braces, if there is one. */
export function slotOf(key: string): number {
  const tag = /^[^{]*\{([^}]+)\}/.exec(key)?.[1] ?? key
  let crc = 0
  for (const byte of Buffer.from(tag)) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit++) crc = (crc & 0x8000) === 0 ? (crc << 1) & 0xffff : ((crc << 1) ^ 0x1021) & 0xffff
  }
  return crc % 16_384
}
