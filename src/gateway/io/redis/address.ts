// The location of Redis, as one URL: one server, servers known to Sentinels, or a Redis Cluster.
//
//   redis://[USER@]HOST:PORT[/DATABASE]
//   redis+sentinel://[USER@]SENTINEL:PORT,SENTINEL:PORT/MASTER-NAME[/DATABASE]
//   redis+cluster://[USER@]NODE:PORT,NODE:PORT
//
// `rediss` instead of `redis` is TLS. `redis-sentinel://` and `redis-cluster://` are also accepted.

import { UserError } from '../../../kit/api/validation/field-errors.ts'

interface RedisNode {
  /** A name or an address, IPv6 without brackets. */
  readonly host: string
  readonly port: number
}

export interface RedisAddress {
  readonly topology: 'server' | 'sentinel' | 'cluster'
  readonly tls: boolean
  /** The server, the Sentinels, or some of the Cluster's nodes; at least one. */
  readonly nodes: readonly RedisNode[]
  /** The master's name at the Sentinels; '' = there are none. */
  readonly master: string
  readonly database: number
  /** '' = the user `default`. */
  readonly user: string
  /** '' = none in the URL. */
  readonly password: string
}

const SCHEME = /^redis(s?)(?:[+-](sentinel|cluster))?$/
const REDIS_PORT = 6379
const SENTINEL_PORT = 26379
const MAX_NODES = 64
const FIX =
  'write redis://HOST:PORT, redis+sentinel://HOST:PORT,HOST:PORT/MASTER-NAME or redis+cluster://HOST:PORT,HOST:PORT; rediss instead of redis for TLS'

/** @throws {UserError} which quotes nothing of the URL but its scheme: it may contain a password */
export function parseRedisAddress(url: string): RedisAddress {
  const [, scheme = '', authority = '', path = ''] = /^([a-z+-]+):\/\/([^/?#\s]+)((?:\/[^?#\s]*)?)$/i.exec(url) ?? []
  if (scheme === '') throw invalid('is not a URL')
  const [, secure = '', kind] = SCHEME.exec(scheme.toLowerCase()) ?? invalidScheme(scheme)
  const topology = kind === 'sentinel' || kind === 'cluster' ? kind : 'server'
  const at = authority.lastIndexOf('@')
  const [user, password] = credentialsOf(authority.slice(0, Math.max(0, at)))
  const nodes = authority
    .slice(at + 1)
    .split(',')
    .map((node) => nodeOf(node, topology === 'sentinel' ? SENTINEL_PORT : REDIS_PORT))
  if (topology === 'server' && nodes.length > 1) throw invalid('names several servers')
  if (nodes.length > MAX_NODES) throw invalid(`names more than ${MAX_NODES} servers`)
  return { topology, tls: secure !== '', nodes, user, password, ...placeOf(topology, path) }
}

/** The location, for people, without the password. @throws {UserError} like `parseRedisAddress` */
export function redisAddress(url: string): string {
  const { topology, nodes, master } = parseRedisAddress(url)
  const places = nodes.map(textOfNode).join(',')
  return topology === 'sentinel' ? `${master} of ${places}` : places
}

export function textOfNode({ host, port }: RedisNode): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** Interprets the path. */
function placeOf(topology: RedisAddress['topology'], path: string): Pick<RedisAddress, 'master' | 'database'> {
  const parts = path.replace(/^\//, '').replace(/\/$/, '').split('/')
  const [first = '', second = '', ...more] = topology === 'sentinel' ? parts : ['', ...parts]
  if (topology === 'sentinel' && first === '') throw invalid('does not name the master that its Sentinels know')
  if (!/^\d{0,4}$/.test(second) || more.length > 0) throw invalid('ends with no number of a database')
  if (topology === 'cluster' && Number(second) !== 0) throw invalid('names a database, and a Redis Cluster has only 0')
  return { master: decoded(first), database: Number(second) }
}

function nodeOf(text: string, defaultPort: number): RedisNode {
  const [, bracketed, plain, port = String(defaultPort)] =
    /^(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9._-]+))(?::(\d{1,5}))?$/.exec(text) ?? []
  const host = bracketed ?? plain
  if (host === undefined) throw invalid('names no valid host')
  if (Number(port) < 1 || Number(port) > 65_535) throw invalid('names a port that is not from 1 to 65535')
  return { host, port: Number(port) }
}

function credentialsOf(text: string): readonly [user: string, password: string] {
  const colon = text.indexOf(':')
  const parts = colon < 0 ? [text, ''] : [text.slice(0, colon), text.slice(colon + 1)]
  return [decoded(parts[0] ?? ''), decoded(parts[1] ?? '')]
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw invalid('has a % that is not followed by two hexadecimal digits: write %25')
  }
}

function invalidScheme(scheme: string): never {
  throw invalid(`begins with ${scheme}://`)
}

function invalid(why: string): UserError {
  return new UserError(`the address of Redis ${why}`, FIX)
}
