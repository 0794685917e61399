// Worker threads: starting them and exchanging messages.

import { Socket } from 'node:net'
import {
  MessageChannel,
  type MessagePort,
  parentPort,
  type Transferable,
  Worker,
  workerData,
} from 'node:worker_threads'
import type { ThreadHeap } from '../../process/core/memory/ceiling.ts'

/** What a message may transfer: also sockets, if nothing was read from them. @types/node does not know that. */
export type Movable = Transferable | Socket

/** Only since some Node 24: other versions throw on such a message. */
export const SOCKETS_MOVE: boolean = Object.getOwnPropertySymbols(Socket.prototype).some(
  ({ description }) => description === 'messaging_transfer_symbol',
)

/** Events of a started thread. */
export interface ThreadEvents<From> {
  onMessage(message: From): void
  /** Why it will end: an uncaught error, or out of memory. `onExit` follows. */
  onError(error: Error): void
  /** It has ended. */
  onExit(): void
}

/** A thread, as its parent sees it. */
export interface Thread<To> {
  /** Never reused in a process. */
  readonly id: number
  /** @param moved what the message transfers; this thread no longer has it. Default: nothing */
  post(message: To, moved?: readonly Movable[]): void
  /** Milliseconds in which its event loop was busy, since its start. */
  busyMs(): number
  /** Terminates it at once, whatever it is doing; resolves when it has ended. */
  terminate(): Promise<void>
}

/**
 * Starts `entry` as a thread. `data` and all messages are cloned; shared memory stays shared.
 * @param data available to the thread through `threadData`
 */
export function startThread<To, From>(
  entry: URL,
  name: string,
  data: unknown,
  events: ThreadEvents<From>,
  { oldMiB, youngMiB }: ThreadHeap,
): Thread<To> {
  const resourceLimits = { maxOldGenerationSizeMb: oldMiB, maxYoungGenerationSizeMb: youngMiB }
  const worker = new Worker(entry, { workerData: data, name, resourceLimits })
  // It is -1 once the thread has ended.
  const id = worker.threadId
  worker.on('message', (message: From) => events.onMessage(message))
  worker.on('messageerror', (error) => events.onError(error))
  worker.on('error', (error) => events.onError(error instanceof Error ? error : new Error(String(error))))
  worker.on('exit', () => events.onExit())
  return {
    id,
    post: (message, moved = []) => void Reflect.apply(worker.postMessage, worker, [message, moved]),
    busyMs: () => worker.performance.eventLoopUtilization().active,
    terminate: async () => void (await worker.terminate()),
  }
}

/** Both ends of a channel between two threads. */
export function createLine(): readonly [MessagePort, MessagePort] {
  const { port1, port2 } = new MessageChannel()
  return [port1, port2]
}

/** The thread's channel to its parent. */
interface ParentLine<To> {
  readonly data: unknown
  post(message: To): void
}

/** @throws outside of a thread */
export function parentLine<To, From>(onMessage: (message: From) => void): ParentLine<To> {
  const port = parentPort
  if (port === null) throw new Error('not a worker thread')
  // Messages that arrive before this turn ends are queued.
  port.on('message', onMessage)
  return { data: workerData, post: (message) => port.postMessage(message) }
}
