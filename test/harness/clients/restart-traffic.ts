// Traffic while gateways are restarted, by a client that does what the RFCs say and no more, and counts exactly. It goes on after GOAWAY on
// another connection (RFC 9113, 6.8), repeats what was refused unprocessed (8.7), and resumes watches where they ended. Whatever else
// happens to a request is a failure: there is no second try of anything that may have been processed, and none of a connection.

import type { ClientHttp2Session } from 'node:http2'
import { setTimeout as sleep } from 'node:timers/promises'
import type { KeyPair } from '../../../src/pki/io/pki.ts'
import { h2Connect, h2Open, h2Request } from './h2-client.ts'
import { http1Connect, requestHead } from './http1-client.ts'
import { openRaw } from './raw-clients.ts'

export interface TrafficOptions {
  readonly port: number
  readonly serverName: string
  readonly certificate: KeyPair
  readonly requestsPerSecond: number
  /** HTTP/2 connections that requests are sent on in turn. */
  readonly sessions: number
  /** One request in so many opens an HTTP/1.1 connection for itself, as a new kubectl or curl does. */
  readonly freshEvery: number
  readonly path: string
  /** Default: prod.example.com. */
  readonly authority?: string
}

export interface Counted {
  /** Answered with 200, whole. */
  served: number
  /** How many of these were sent again after REFUSED_STREAM. */
  repeated: number
  /** Connections that were opened because of GOAWAY. */
  moved: number
  readonly failures: string[]
}

const REFUSED_STREAM = 7
const TICK_MS = 5
const AUTHORITY = 'prod.example.com'
const ECHO_MS = 50
/** However far behind the machine is. */
const AT_ONCE = 200

export class RestartTraffic {
  readonly counted: Counted = { served: 0, repeated: 0, moved: 0, failures: [] }
  readonly #options: TrafficOptions
  readonly #sessions = new Map<number, ClientHttp2Session>()
  readonly #errors = new WeakMap<ClientHttp2Session, string>()
  readonly #pending = new Set<Promise<void>>()
  #running = true
  #done: Promise<void> | undefined

  constructor(options: TrafficOptions) {
    this.#options = options
  }

  start(): void {
    this.#done = this.#run()
  }

  /** Sends nothing more, and waits for what is under way. */
  async stop(): Promise<Counted> {
    this.#running = false
    await this.#done
    for (const session of this.#sessions.values()) session.destroy()
    return this.counted
  }

  async #run(): Promise<void> {
    const { requestsPerSecond, freshEvery } = this.#options
    const startedMs = performance.now()
    let skipped = 0
    for (let sent = 0; this.#running; ) {
      const due = Math.floor(((performance.now() - startedMs) * requestsPerSecond) / 1000) - skipped
      for (; sent < due; sent++) {
        // A machine that cannot keep up sends fewer, and not thousands at once later.
        if (this.#pending.size >= AT_ONCE) {
          skipped += due - sent
          break
        }
        const one = sent % freshEvery === 0 ? this.#fresh() : this.#onSession(sent % this.#options.sessions)
        const pending: Promise<void> = one
          .catch((error: unknown) => this.#fail(String(error)))
          .finally(() => this.#pending.delete(pending))
        this.#pending.add(pending)
      }
      await sleep(TICK_MS)
    }
    await Promise.all(this.#pending)
  }

  #fail(why: string): void {
    this.counted.failures.push(`${new Date().toISOString()} ${why}`)
  }

  #session(index: number): ClientHttp2Session {
    const known = this.#sessions.get(index)
    if (known !== undefined && !known.closed && !known.destroyed) return known
    if (known !== undefined) this.counted.moved++
    const { port, serverName, certificate } = this.#options
    const session = h2Connect({ port, serverName, certificate })
    session.once('error', (error) => this.#errors.set(session, String(error)))
    this.#sessions.set(index, session)
    return session
  }

  async #onSession(index: number): Promise<void> {
    const { path, authority = AUTHORITY } = this.#options
    for (let attempt = 0; ; attempt++) {
      const session = this.#session(index)
      const { status, resetCode, body } = await h2Request(session, [':path', path, ':authority', authority])
      if (status === 200 && resetCode === 0) {
        this.counted.served++
        if (attempt > 0) this.counted.repeated++
        return
      }
      if (status === 0 && resetCode === REFUSED_STREAM) continue
      this.#fail(
        `HTTP/2: status ${status}, reset ${resetCode} ${this.#errors.get(session) ?? ''} ${body.toString().slice(0, 200)}`,
      )
      return
    }
  }

  async #fresh(): Promise<void> {
    const { port, serverName, certificate, path, authority = AUTHORITY } = this.#options
    const raw = await openRaw({ port, serverName, cert: certificate, alpn: ['http/1.1'] })
    try {
      raw.send(`GET ${path} HTTP/1.1\r\nHost: ${authority}\r\nConnection: close\r\n\r\n`)
      await raw.closed
      if (/^HTTP\/1\.1 200 /.test(raw.text())) this.counted.served++
      else this.#fail(`HTTP/1.1: ${JSON.stringify(raw.text().slice(0, 200))}`)
    } finally {
      raw.destroy()
    }
  }
}

const REQUESTS_OF_A_CONNECTION = 200

/** Requests over HTTP/1.1 connections that are kept until an answer says `Connection: close`. None is sent twice. */
export class KeptTraffic {
  readonly counted: Counted = { served: 0, repeated: 0, moved: 0, failures: [] }
  readonly #options: Omit<WatchOptions, 'since'>
  #running = true
  #done: Promise<unknown> | undefined

  constructor(options: Omit<WatchOptions, 'since'>) {
    this.#options = options
  }

  start(connections: number): void {
    this.#done = Promise.all(Array.from({ length: connections }, () => this.#run()))
  }

  async stop(): Promise<Counted> {
    this.#running = false
    await this.#done
    return this.counted
  }

  async #run(): Promise<void> {
    while (this.#running) {
      await this.#connection().catch((error: unknown) => {
        this.counted.failures.push(`${new Date().toISOString()} HTTP/1.1: ${String(error)}`)
      })
    }
  }

  async #connection(): Promise<void> {
    const { port, serverName, certificate, path, authority } = this.#options
    const client = await http1Connect({ port, serverName, cert: certificate })
    try {
      for (let sent = 0; this.#running && sent < REQUESTS_OF_A_CONNECTION; sent++) {
        client.send(requestHead(`GET ${path}`, [], authority ?? AUTHORITY))
        const answer = await client.response()
        if (answer.status !== 200 || !answer.complete) throw new Error(`status ${answer.status}`)
        this.counted.served++
        if (answer.values('connection').includes('close')) {
          this.counted.moved++
          return
        }
        await sleep(TICK_MS * Math.random())
      }
    } finally {
      client.destroy()
    }
  }
}

export interface WatchOptions {
  readonly port: number
  readonly serverName: string
  readonly certificate: KeyPair
  /** With `resourceVersion=` at its end. */
  readonly path: string
  readonly since: number
  /** Default: prod.example.com. */
  readonly authority?: string
}

/** A watch that is resumed for ever, on a connection of its own each time, as an informer whose connection had GOAWAY. */
export class ResumedWatch {
  /** `data.number` of the objects, else their resourceVersion, in the order in which they came. */
  readonly seen: number[] = []
  readonly failures: string[] = []
  resumed = -1
  readonly #options: WatchOptions
  #session: ClientHttp2Session | undefined
  #running = true
  #done: Promise<void> | undefined

  constructor(options: WatchOptions) {
    this.#options = options
  }

  start(): void {
    this.#done = this.#run()
  }

  async stop(): Promise<void> {
    this.#running = false
    this.#session?.destroy()
    await this.#done
  }

  async #run(): Promise<void> {
    let version = this.#options.since
    while (this.#running) {
      this.resumed++
      const session = h2Connect(this.#options)
      this.#session = session
      const stream = h2Open(session, [
        ':path',
        `${this.#options.path}${version}`,
        ':authority',
        this.#options.authority ?? AUTHORITY,
      ])
      let rest = ''
      let status = 0
      stream.on('response', (headers) => {
        status = Number(headers[':status'])
      })
      stream.setEncoding('utf8')
      stream.on('data', (text: string) => {
        const lines = (rest + text).split('\n')
        rest = lines.pop() ?? ''
        for (const line of lines) {
          const event = eventIn(line)
          version = event.version
          this.seen.push(event.number)
        }
      })
      await new Promise<void>((resolve) => stream.once('close', resolve))
      session.destroy()
      if (!this.#running) return
      // A clean end between two events: only then may it go on without a list.
      if (status === 200 && stream.rstCode === 0 && rest === '') continue
      this.failures.push(`watch: status ${status}, reset ${stream.rstCode}, ${rest.length} bytes of an event`)
      await sleep(TICK_MS)
    }
  }
}

function eventIn(line: string): { version: number; number: number } {
  const { object } = JSON.parse(line) as {
    object: { metadata: { resourceVersion: string }; data?: { number?: string } }
  }
  const version = Number(object.metadata.resourceVersion)
  return { version, number: Number(object.data?.number ?? version) }
}

const ECHO = 'echo'

/** Upgraded connections, as exec has them, that an upstream echoes on; opened again whenever one has ended. */
export class EchoSessions {
  opened = 0
  /** Ended by the gateway while `mayEnd` held. */
  cutOff = 0
  readonly failures: string[] = []
  readonly #options: Omit<WatchOptions, 'since'>
  readonly #mayEnd: () => boolean
  #running = true
  #done: Promise<unknown> | undefined

  /** @param mayEnd whether a gateway drains now */
  constructor(options: Omit<WatchOptions, 'since'>, mayEnd: () => boolean) {
    this.#options = options
    this.#mayEnd = mayEnd
  }

  start(sessions: number): void {
    this.#done = Promise.all(Array.from({ length: sessions }, () => this.#run()))
  }

  async stop(): Promise<void> {
    this.#running = false
    await this.#done
  }

  async #run(): Promise<void> {
    while (this.#running) await this.#session().catch((error: unknown) => this.failures.push(`exec: ${String(error)}`))
  }

  async #session(): Promise<void> {
    const { port, serverName, certificate, path } = this.#options
    const raw = await openRaw({ port, serverName, cert: certificate, alpn: ['http/1.1'] })
    try {
      raw.send(
        `POST ${path} HTTP/1.1\r\nHost: ${serverName}\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nContent-Length: 0\r\n\r\n`,
      )
      await raw.until(/^HTTP\/1\.1 101 [\s\S]*?\r\n\r\n/)
      this.opened++
      const closed = raw.closed.then(() => 'closed')
      for (let echoes = 1; this.#running; echoes++) {
        raw.send(ECHO)
        const back = raw.until(new RegExp(`(${ECHO}){${echoes}}`)).then(
          () => 'echoed',
          () => 'closed',
        )
        if ((await Promise.race([back, closed])) === 'closed') {
          if (this.#mayEnd()) this.cutOff++
          else this.failures.push(`${new Date().toISOString()} exec: ended although nothing drains`)
          return
        }
        await sleep(ECHO_MS)
      }
    } finally {
      raw.destroy()
    }
  }
}
