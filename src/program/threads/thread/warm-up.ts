// Before a gateway thread opens its ports, requests pass through a gateway of the same code that is thrown away: V8 compiles a function when it is first
// called, so otherwise the first client waits for all of the request path (docs/decisions/0100-requests-before-the-first.md).

import { setTimeout as sleep } from 'node:timers/promises'
import { threadScheduler } from '../../../gateway/io/scheduling/thread-scheduler.ts'
import { Http2Group } from '../../../gateway/io/upstream/http2.ts'
import { MetricsRecorder } from '../../../gateway/metrics/recorder.ts'
import { createUpstreamCounters } from '../../../gateway/metrics/upstream-counters.ts'
import type { Logger } from '../../../kit/api/ports.ts'
import type { Charge, HeaderList, StreamEvents } from '../../../kit/api/stream.ts'
import type { PairedServer } from './paired-sockets.ts'
import { type ThrowAwayDeps, ThrowAwayGateway, WARM_UP } from './throw-away-gateway.ts'

/** Ports wait no longer for it. It has usually ended before the main thread has read the objects and probed their servers. */
const WITHIN_MS = 150
/** Closing takes only turns of the event loop: more milliseconds than some only if the thread gets no CPU. */
const CLOSE_MS = 1_000
/** Requests of each kind of client, one after the other. The first one takes half of the time. */
const REQUESTS = 20
const PATHS = ['/api/v1/namespaces/default/pods/one', '/api/v1/pods?limit=500', '/apis/apps/v1/deployments']
const FIELDS = ['user-agent', WARM_UP, 'accept', 'application/json', 'accept-encoding', 'gzip']

const CHARGE: Charge = { source: WARM_UP, weight: 1, known: false }
const nothing = (): void => undefined

export interface WarmUpDeps extends ThrowAwayDeps {
  readonly log: Pick<Logger, 'debug'>
}

export class WarmUp {
  readonly #log: WarmUpDeps['log']
  readonly #done: Promise<void>
  #gateway: ThrowAwayGateway | undefined
  /** How many requests were answered as they should. */
  served = 0

  /** Begins. */
  constructor(deps: WarmUpDeps) {
    this.#log = deps.log
    this.#done = this.#run(deps)
    // `end` reports it.
    this.#done.catch(nothing)
  }

  async #run(deps: WarmUpDeps): Promise<void> {
    const gateway = new ThrowAwayGateway(deps)
    this.#gateway = gateway
    for (const [i, port] of gateway.ports.entries()) {
      // At the first port the client has a certificate.
      const credentials = i === 0 ? [] : ['authorization', `Bearer ${WARM_UP}`]
      await this.#sendTo(createClient(port), credentials)
    }
    await gateway.close()
  }

  async #sendTo(client: Http2Group, credentials: HeaderList): Promise<void> {
    for (let i = 0; i < REQUESTS; i++) {
      const head = [':method', 'GET', ':scheme', 'https', ':authority', WARM_UP, ':path', PATHS[i % PATHS.length] ?? '']
      // A certificate may be expired: then its requests go a shorter way.
      if ((await send(client, [...head, ...FIELDS, ...credentials])) === '200') this.served++
    }
    client.destroy()
  }

  /** Waits for the end, and makes one after `withinMs`. Never rejects. @returns how many requests were served */
  async end(withinMs: number = WITHIN_MS): Promise<number> {
    try {
      await within(withinMs, this.#done)
    } catch (error) {
      this.#log.debug('the request path is not warm: the first requests take longer', { error })
      await within(CLOSE_MS, this.#gateway?.close()).catch(nothing)
    }
    threadScheduler.forgetSources()
    return this.served
  }
}

/** @throws (rejects) if it takes longer */
async function within(ms: number, done: Promise<void> | undefined): Promise<void> {
  const timer = new AbortController()
  const late = sleep(ms, true, { signal: timer.signal }).catch(() => false)
  try {
    if ((await Promise.race([done, late])) === true) throw new Error(`it takes longer than ${ms} ms`)
  } finally {
    timer.abort()
  }
}

function createClient(port: PairedServer): Http2Group {
  const connector = { connect: () => port.connect(), onFailed: nothing, onBroken: nothing, onSuspects: nothing }
  const counters = { http2: new MetricsRecorder().http2Clients, pool: createUpstreamCounters() }
  return new Http2Group(connector, { spread: 1, connections: 1 }, counters)
}

/** Resolves with the status. @throws (rejects) if there is no whole answer */
function send(client: Http2Group, head: HeaderList): Promise<string> {
  return new Promise((resolve, reject) => {
    let status = ''
    const events: StreamEvents = {
      onHeaders(list, end) {
        status = list[1] ?? ''
        if (end) resolve(status)
      },
      onBody(chunk, end) {
        stream.credit(chunk.length)
        if (end) resolve(status)
      },
      onTrailers: () => resolve(status),
      onDrained: nothing,
      onReset: (reason) => reject(new Error(`a request was reset: ${reason}`)),
    }
    const stream = client.open(head, undefined, true, events, CHARGE)
  })
}
