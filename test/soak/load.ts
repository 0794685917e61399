// Mixed traffic through a gateway: reads, large lists, writes, watches, and clients that go away in every way they can.

import type { ClientHttp2Session } from 'node:http2'
import { setTimeout as sleep } from 'node:timers/promises'
import { h2Connect, h2Open, h2Request, h2Response, type Response } from '../harness/clients/h2-client.ts'
import type { SoakUpstreams } from './upstreams.ts'

const CANCEL = 8
const LONGEST_WATCH_MS = 3_000
/** What a session does before another one takes its place, milliseconds at most. */
const SESSION_MS = 15_000
const ANSWER_TIMEOUT_MS = 30_000

export class Load {
  readonly outcomes: Map<string, number> = new Map()
  readonly #upstreams: SoakUpstreams
  readonly #port: number
  readonly #sessions = new Set<ClientHttp2Session>()
  #running = true
  #number = 0
  readonly #workers: Promise<void>[]

  constructor(port: number, upstreams: SoakUpstreams) {
    this.#port = port
    this.#upstreams = upstreams
    const { paths } = upstreams
    const loops: [number, (session: ClientHttp2Session) => Promise<void>][] = [
      [6, (session) => this.#count('read', this.#get(session, paths.object))],
      [2, (session) => this.#count('list', this.#get(session, paths.list))],
      [4, (session) => this.#count('write', this.#post(session))],
      [10, (session) => this.#watch(session)],
      [2, (session) => this.#abortRead(session)],
      [2, (session) => this.#abortWrite(session)],
    ]
    this.#workers = loops.flatMap(([count, once]) => Array.from({ length: count }, () => this.#loop(once)))
  }

  /** Everything that runs is finished, every connection closed. */
  async stop(): Promise<void> {
    this.#running = false
    await Promise.all(this.#workers)
    for (const session of this.#sessions) session.destroy()
  }

  connect(): ClientHttp2Session {
    const { host, certificate } = this.#upstreams
    const session = h2Connect({ port: this.#port, serverName: host, certificate })
    this.#sessions.add(session)
    session.on('close', () => this.#sessions.delete(session))
    return session
  }

  /** Again and again; on one session for a while, which then ends in good order, or with everything that is on it. */
  async #loop(once: (session: ClientHttp2Session) => Promise<void>): Promise<void> {
    while (this.#running) {
      const session = this.connect()
      const until = performance.now() + SESSION_MS * Math.random()
      while (this.#running && performance.now() < until && !session.destroyed && !session.closed) {
        await once(session)
        await sleep(5)
      }
      if (Math.random() < 0.5) session.close()
      else session.destroy()
    }
  }

  #authority(): string[] {
    return [':authority', this.#upstreams.host]
  }

  #get(session: ClientHttp2Session, path: string): Promise<Response> {
    return h2Request(session, [...this.#authority(), ':path', path])
  }

  #post(session: ClientHttp2Session): Promise<Response> {
    const { paths } = this.#upstreams
    const head = [...this.#authority(), ':method', 'POST', ':path', paths.create, 'content-type', 'application/json']
    return h2Request(session, head, paths.body(this.#number++))
  }

  async #count(kind: string, answer: Promise<Response>): Promise<void> {
    const late = sleep(ANSWER_TIMEOUT_MS, undefined, { ref: false })
    const got = await Promise.race([answer, late])
    const outcome = got === undefined ? 'NO ANSWER' : got.resetCode !== 0 ? `reset ${got.resetCode}` : `${got.status}`
    this.#add(`${kind} ${outcome}`)
  }

  #add(outcome: string): void {
    this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + 1)
  }

  /** Cancelled after a while, as informers do; or its session is destroyed under it. */
  async #watch(session: ClientHttp2Session): Promise<void> {
    const stream = h2Open(session, [...this.#authority(), ':path', this.#upstreams.paths.watch])
    const closed = h2Response(stream)
    await Promise.race([closed, sleep(LONGEST_WATCH_MS * Math.random())])
    if (!stream.closed) stream.close(CANCEL)
    const { status } = await closed
    this.#add(`watch ${status}`)
  }

  async #abortRead(session: ClientHttp2Session): Promise<void> {
    const stream = h2Open(session, [...this.#authority(), ':path', this.#upstreams.paths.list])
    const closed = h2Response(stream)
    await Promise.race([closed, sleep(30 * Math.random())])
    if (!stream.closed) stream.close(CANCEL)
    await closed
    this.#add('aborted read')
  }

  async #abortWrite(session: ClientHttp2Session): Promise<void> {
    const head = [...this.#authority(), ':method', 'POST', ':path', this.#upstreams.paths.create]
    const stream = h2Open(session, head, { endStream: false })
    const closed = h2Response(stream)
    stream.write(Buffer.alloc(100_000))
    await Promise.race([closed, sleep(30 * Math.random())])
    if (!stream.closed) stream.close(CANCEL)
    await closed
    this.#add('aborted write')
  }
}

/** Small requests, one after the other: so that garbage is collected, and idle connections are the same as before. */
export async function trickle(load: Load, upstreams: SoakUpstreams, requests: number): Promise<void> {
  const session = load.connect()
  for (let i = 0; i < requests; i++) {
    await h2Request(session, [':authority', upstreams.host, ':path', upstreams.paths.object])
  }
  await new Promise<void>((resolve) => {
    session.once('close', () => resolve())
    session.close()
  })
}
