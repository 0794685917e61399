// A gateway thread inside the main thread, for single-process tests: the same class and the same messages, which arrive before `post` returns.

import { performance } from 'node:perf_hooks'
import type { Movable, Thread, ThreadEvents } from '../../io/threads.ts'
import { loadThreadSubjects } from '../../subjects/load.ts'
import type { FromThread, ThreadData, ToThread } from '../messages.ts'
import { GatewayThread } from '../thread/gateway-thread.ts'

let lastId = 0

/** Like `startThread` of a worker; it ends when its listeners and connections are closed. */
export function startInlineThread(data: ThreadData, events: ThreadEvents<FromThread>): Thread<ToThread> {
  lastId--
  let ended = false
  // Messages from the constructor arrive before the caller has the thread's handle.
  let inside: GatewayThread | undefined
  const early: ToThread[] = []
  const receive = (message: ToThread, moved: readonly Movable[] = []): void => {
    // Cloned as for a worker, so that every test detects what cannot be cloned.
    if (inside === undefined) early.push(message)
    else inside.receive(Reflect.apply(structuredClone, undefined, [message, { transfer: moved }]))
  }
  const handle: Thread<ToThread> = {
    id: lastId,
    post: (message, moved) => {
      if (!ended) receive(message, moved)
    },
    busyMs: () => performance.eventLoopUtilization().active,
    terminate: () => {
      if (!ended) {
        ended = true
        inside?.receive({ type: 'end' })
        events.onExit()
      }
      return Promise.resolve()
    },
  }
  loadThreadSubjects()
    .then((subjects) => {
      if (ended) return
      inside = new GatewayThread(data, (message) => events.onMessage(message), subjects)
      for (const message of early.splice(0)) inside.receive(message)
    })
    .catch((error: unknown) => events.onError(error instanceof Error ? error : new Error(String(error))))
  return handle
}
