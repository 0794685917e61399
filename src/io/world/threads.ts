// Worker threads: starting them and exchanging messages.

import { MessageChannel, type MessagePort, parentPort, Worker, workerData } from 'node:worker_threads'

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
  /** @param ports in the message: they move to the thread */
  post(message: To, ports?: readonly MessagePort[]): void
  /** Ends it at once, in the middle of whatever it does; resolves when it has ended. */
  terminate(): Promise<void>
}

/**
 * Starts `entry` as a thread. `data` and all messages are cloned; shared memory stays shared.
 * @param data what the thread finds with `threadData`
 */
export function startThread<To, From>(entry: URL, name: string, data: unknown, events: ThreadEvents<From>): Thread<To> {
  const worker = new Worker(entry, { workerData: data, name })
  // It is -1 once the thread has ended.
  const id = worker.threadId
  worker.on('message', (message: From) => events.onMessage(message))
  worker.on('messageerror', (error) => events.onError(error))
  worker.on('error', (error) => events.onError(error instanceof Error ? error : new Error(String(error))))
  worker.on('exit', () => events.onExit())
  return {
    id,
    post: (message, ports = []) => worker.postMessage(message, [...ports]),
    terminate: async () => void (await worker.terminate()),
  }
}

/** Two ends of a line between two threads. */
export function createLine(): readonly [MessagePort, MessagePort] {
  const { port1, port2 } = new MessageChannel()
  return [port1, port2]
}

/** The thread's channel to its parent. */
export interface ParentLine<To> {
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
