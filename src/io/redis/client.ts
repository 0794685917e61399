// The connection to Redis: one, always reconnecting, without a queue. A command that cannot be sent now fails now.

import { isIP } from 'node:net'
import { Redis } from 'ioredis'
import { UserError } from '../../api/validation/field-errors.ts'

export interface RedisOptions {
  /** `redis://host:port/db`, or `rediss://` for TLS; with a user name where Redis has one. */
  readonly url: string
  /** '' = what the URL says, or none. */
  readonly password: string
  /** PEM of the CAs that verify Redis; '' = those of the system. Only with `rediss://`. */
  readonly ca: string
}

const CONNECT_TIMEOUT_MS = 2_000
const COMMAND_TIMEOUT_MS = 1_000
const FIRST_RETRY_MS = 100
const MAX_RETRY_MS = 1_000
const DEFAULT_PORT = 6379

/** `host:port`, for people: never the password. @throws {UserError} when it is not the address of a Redis */
export function redisAddress(url: string): string {
  const { hostname, port } = parseRedisUrl(url)
  return `${hostname}:${port === '' ? DEFAULT_PORT : port}`
}

/** Connects now, and again whenever the connection breaks. @throws {UserError} for an invalid URL */
export function connectRedis(options: RedisOptions, random: () => number): Redis {
  const { protocol, hostname, port, pathname, username, password } = parseRedisUrl(options.url)
  const secret = options.password === '' ? decodeURIComponent(password) : options.password
  const host = hostname.replace(/^\[|\]$/g, '')
  const name = isIP(host) === 0 ? { servername: host } : {}
  const tls = protocol === 'rediss:' ? { ...name, ...(options.ca === '' ? {} : { ca: options.ca }) } : undefined
  return new Redis({
    host,
    port: port === '' ? DEFAULT_PORT : Number(port),
    db: Number(pathname.slice(1)),
    ...(username === '' ? {} : { username: decodeURIComponent(username) }),
    ...(secret === '' ? {} : { password: secret }),
    ...(tls === undefined ? {} : { tls }),
    connectionName: 'portcullis',
    connectTimeout: CONNECT_TIMEOUT_MS,
    commandTimeout: COMMAND_TIMEOUT_MS,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    retryStrategy: (attempt) => retryDelayMs(attempt, random()),
    // A Redis replica that was the primary until just now: connect again, perhaps to the new one.
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
  })
}

function retryDelayMs(attempt: number, random: number): number {
  const most = Math.min(FIRST_RETRY_MS * 2 ** Math.min(attempt - 1, 10), MAX_RETRY_MS)
  return Math.ceil(most * (0.5 + random / 2))
}

function parseRedisUrl(url: string): URL {
  const fix = 'write redis://host:6379, or rediss://host:6379 for TLS'
  // It may contain a password: no part of it is shown.
  if (!URL.canParse(url)) throw new UserError('the address of Redis is not a URL', fix)
  const parsed = new URL(url)
  if (parsed.protocol !== 'redis:' && parsed.protocol !== 'rediss:') {
    throw new UserError(`the address of Redis begins with ${parsed.protocol}//`, fix)
  }
  if (parsed.hostname === '') throw new UserError('the address of Redis names no host', fix)
  if (!/^\/?\d*$/.test(parsed.pathname))
    throw new UserError('the address of Redis ends with no number of a database', fix)
  return parsed
}
