// Tells a connection when Sentinels have made another server the master. A master that was cut off from them, but not from this
// replica of the gateway, would go on answering, and count by itself.

import { type RedisOptions as IoRedisOptions, Redis } from 'ioredis'
import { type RedisAddress, textOfNode } from './address.ts'

/** Of one connection. */
export type ServerOptions = Omit<IoRedisOptions, 'replyMapping' | 'himportFieldsets'>

const SWITCHED = '+switch-master'

/** Follows all Sentinels of the address. @returns ends it */
export function watchFailovers(redis: Redis, { nodes, master }: RedisAddress, options: ServerOptions): () => void {
  const watches = nodes.map((node) => {
    const watch = new Redis({
      ...options,
      ...node,
      enableReadyCheck: false,
      disableClientInfo: true,
      maxRetriesPerRequest: null,
      connectionName: 'portcullis-failover',
    })
    // ioredis itself only says that the connection to a Sentinel is closed.
    watch.on('error', ({ message }: Error) => {
      redis.emit('sentinelError', new Error(`failed to connect to sentinel ${textOfNode(node)} because ${message}`))
    })
    watch.on('message', (channel: string, message: string) => {
      if (channel !== SWITCHED || !message.startsWith(`${master} `)) return
      // Each Sentinel says it; a connection that is being made asks them anyway.
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
