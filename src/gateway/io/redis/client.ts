// The connection to Redis: always reconnecting, without a queue. A command that cannot be sent now fails now.

import { isIP } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import { Cluster, type RedisOptions as IoRedisOptions, Redis } from 'ioredis'
import { parseRedisAddress, type RedisAddress, textOfNode } from './address.ts'
import type { RedisCredentials } from './credentials.ts'

export interface RedisOptions extends RedisCredentials {
  /** See address.ts. */
  readonly url: string
  /** User at the Sentinels; '' = `default`. */
  readonly sentinelUser?: string
  /** The name that Redis' certificates must have, whatever address is used; '' = the host's name or address. */
  readonly serverName?: string
}

export type RedisConnection = Redis | Cluster

export interface OpenRedis {
  readonly redis: RedisConnection
  /** Closes permanently, with everything that belongs to it. */
  close(): void
}

const CONNECT_TIMEOUT_MS = 2_000
const COMMAND_TIMEOUT_MS = 1_000
/**
 * A connection on which commands are unanswered for this long is dropped; otherwise the new master would not be looked for until the kernel gives up,
 * which takes many minutes if a machine has lost power.
 */
const SILENT_MS = 1_500
const FIRST_RETRY_MS = 100
const MAX_RETRY_MS = 1_000
/** For one command, between nodes of a Cluster. */
const MAX_REDIRECTIONS = 4
/** How often a Cluster is asked for its slot map, besides whenever a node responds with MOVED. */
const SLOTS_EVERY_MS = 5_000

/** Connects now, and again whenever the connection breaks. @throws {UserError} for an invalid URL */
export function connectRedis(options: RedisOptions, random: () => number): OpenRedis {
  const address = parseRedisAddress(options.url)
  const retry = (attempt: number): number => retryDelayMs(attempt, random())
  const server = serverOptions(options, address)
  switch (address.topology) {
    case 'server':
      return opened(new Redis({ ...server, ...address.nodes[0], db: address.database, retryStrategy: retry }))
    case 'sentinel':
      return connectSentinel(options, address, server, retry)
    case 'cluster':
      return opened(connectCluster(address, server, retry))
  }
}

function opened(redis: RedisConnection): OpenRedis {
  return { redis, close: () => redis.disconnect() }
}

/** Options of each connection to a data server. */
function serverOptions(options: RedisOptions, address: RedisAddress): ServerOptions {
  const password = options.password === '' ? address.password : options.password
  const tls = tlsOptions(options, address)
  return {
    ...(address.user === '' ? {} : { username: address.user }),
    ...(password === '' ? {} : { password }),
    ...(tls === undefined ? {} : { tls }),
    connectionName: 'portcullis',
    disableClientInfo: true,
    connectTimeout: CONNECT_TIMEOUT_MS,
    commandTimeout: COMMAND_TIMEOUT_MS,
    socketTimeout: SILENT_MS,
    maxLoadingRetryTime: MAX_RETRY_MS,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    // Commands sent to a lost master must not be resent to the next one.
    autoResendUnfulfilledCommands: false,
    // A Redis replica that was the master until just now: reconnect, perhaps to the new one.
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
  }
}

function connectSentinel(
  options: RedisOptions,
  address: RedisAddress,
  server: ServerOptions,
  retry: (attempt: number) => number,
): OpenRedis {
  const { sentinelUser = '', sentinelPassword = '' } = options
  const tls = tlsOptions(options, address)
  const sentinel: ServerOptions = {
    ...(sentinelUser === '' ? {} : { sentinelUsername: sentinelUser }),
    ...(sentinelPassword === '' ? {} : { sentinelPassword }),
    ...(tls === undefined ? {} : { sentinelTLS: tls, enableTLSForSentinelMode: true }),
  }
  const redis = new Redis({
    ...server,
    ...sentinel,
    sentinels: [...address.nodes],
    name: address.master,
    role: 'master',
    db: address.database,
    sentinelCommandTimeout: COMMAND_TIMEOUT_MS,
    sentinelRetryStrategy: retry,
    retryStrategy: retry,
  })
  const unwatch = watchFailovers(redis, address, {
    ...(sentinelUser === '' ? {} : { username: sentinelUser }),
    ...(sentinelPassword === '' ? {} : { password: sentinelPassword }),
    ...(tls === undefined ? {} : { tls }),
    connectTimeout: CONNECT_TIMEOUT_MS,
    retryStrategy: retry,
  })
  return {
    redis,
    close: () => {
      unwatch()
      redis.disconnect()
    },
  }
}

function connectCluster(address: RedisAddress, server: ServerOptions, retry: (attempt: number) => number): Cluster {
  return new Cluster([...address.nodes], {
    redisOptions: server,
    clusterRetryStrategy: retry,
    enableOfflineQueue: false,
    maxRedirections: MAX_REDIRECTIONS,
    // 0 = never: the caller continues with its share, and retries later.
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
    retryDelayOnTryAgain: 0,
    slotsRefreshTimeout: COMMAND_TIMEOUT_MS,
    slotsRefreshInterval: SLOTS_EVERY_MS,
    // Certificates contain names: each connection resolves them itself.
    dnsLookup: (host, found) => found(null, host),
  })
}

/** undefined = without TLS. */
function tlsOptions(
  { ca, cert = '', key = '', serverName = '' }: RedisOptions,
  { tls, topology, nodes }: RedisAddress,
): ConnectionOptions | undefined {
  if (!tls) return undefined
  const [host = ''] = topology === 'server' ? nodes.map((node) => node.host) : []
  const name = serverName === '' && isIP(host) === 0 ? host : serverName
  return {
    ...(name === '' ? {} : { servername: name }),
    ...(ca === '' ? {} : { ca }),
    ...(cert === '' ? {} : { cert, key }),
  }
}

function retryDelayMs(attempt: number, random: number): number {
  const most = Math.min(FIRST_RETRY_MS * 2 ** Math.min(attempt - 1, 10), MAX_RETRY_MS)
  return Math.ceil(most * (0.5 + random / 2))
}

// Notifies a connection when Sentinels have promoted another master. A master cut off from them, but not from this gateway replica, would go on
// responding, and count separately.

/** Options of one connection. */
type ServerOptions = Omit<IoRedisOptions, 'replyMapping' | 'himportFieldsets'>

const SWITCHED = '+switch-master'

/** Follows all Sentinels of the address. @returns stops it */
function watchFailovers(redis: Redis, { nodes, master }: RedisAddress, options: ServerOptions): () => void {
  const watches = nodes.map((node) => {
    const watch = new Redis({
      ...options,
      ...node,
      enableReadyCheck: false,
      disableClientInfo: true,
      maxRetriesPerRequest: null,
      connectionName: 'portcullis-failover',
    })
    // ioredis itself only reports that a Sentinel's connection is closed.
    watch.on('error', ({ message }: Error) => {
      redis.emit('sentinelError', new Error(`failed to connect to sentinel ${textOfNode(node)} because ${message}`))
    })
    watch.on('message', (channel: string, message: string) => {
      if (channel !== SWITCHED || !message.startsWith(`${master} `)) return
      // Every Sentinel reports it; a connection being established asks them anyway.
      if (redis.status === 'ready' && !isAt(redis, message)) redis.disconnect(true)
    })
    watch.subscribe(SWITCHED).catch(() => undefined)
    return watch
  })
  return () => {
    for (const watch of watches) watch.disconnect()
  }
}

/** `NAME OLD-HOST OLD-PORT NEW-HOST NEW-PORT` */
function isAt(redis: Redis, message: string): boolean {
  const [, , , host, port] = message.split(' ')
  const { remoteAddress, remotePort } = redis.stream
  return host === remoteAddress && Number(port) === remotePort
}
