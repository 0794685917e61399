// Worker threads: starting one, and talking with it by messages.

import { parentPort, Worker, workerData } from 'node:worker_threads'

/** What a started thread tells. */
export interface ThreadEvents<From> {
  onMessage(message: From): void
  /** Why it will end: an error that nobody caught, or no memory left. `onExit` follows. */
  onError(error: Error): void
  /** It runs no more. */
  onExit(): void
}

/** A thread, as who started it sees it. */
export interface Thread<To> {
  /** Never used twice in a process. */
  readonly id: number
  post(message: To): void
  /** Ends it at once, in the middle of whatever it does; resolves when it runs no more. */
  terminate(): Promise<void>
}

/**
 * Starts `entry` as a thread. `data` and all messages are cloned; memory that is shared stays shared.
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
    post: (message) => worker.postMessage(message),
    terminate: async () => void (await worker.terminate()),
  }
}

/** The thread's own end of the line: to who started it. */
export interface ParentLine<To> {
  readonly data: unknown
  post(message: To): void
}

/** @throws outside of a thread */
export function parentLine<To, From>(onMessage: (message: From) => void): ParentLine<To> {
  const port = parentPort
  if (port === null) throw new Error('not a worker thread')
  // Messages that come before this turn ends wait.
  port.on('message', onMessage)
  return { data: workerData, post: (message) => port.postMessage(message) }
}
