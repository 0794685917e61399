// The client's side under test: it has opened CLIENT_STREAMS, and opens further ones as they end.

import { ClientConnection, type ClientEvents } from '../../src/http2/client.ts'
import { createHttp2Counters, type Http2Counters } from '../../src/http2/counters.ts'
import type { SharedFields } from '../../src/kit/api/stream.ts'
import * as h2 from '../harness/frames/h2-frames.ts'
import { build } from './build-frames.ts'
import { CLIENT_STREAMS } from './sessions.ts'
import { Heard, LIMITS, NOW_MS, Subject, Violation } from './subject.ts'

const COUNTERS: Http2Counters = createHttp2Counters()
const METHODS = ['GET', 'POST', 'HEAD', 'POST', 'PUT']
const MOST_STREAMS = 8
const SHARED: SharedFields = { list: ['authorization', 'Bearer x', 'impersonate-user', 'alice'], encoded: undefined }
/** `:status: 200`. */
const PROBE = Buffer.from([0x88])

export class ClientSubject extends Subject implements ClientEvents {
  protected readonly connection: ClientConnection
  protected readonly givesBackWhenTaken: boolean
  readonly #profile: number
  #goaway = false

  /** `profile` decides which requests are sent, and how their answers are read. */
  constructor(profile: number, readHeads: boolean) {
    super(readHeads)
    this.#profile = profile
    this.sent.windowGrowth = LIMITS.client.streamWindowGrowthBytes
    const connectionCredit = profile % 2 === 0 ? 'at-once' : 'when-taken'
    this.givesBackWhenTaken = connectionCredit === 'when-taken'
    this.connection = new ClientConnection({ ...LIMITS.client, connectionCredit }, COUNTERS, this, this, NOW_MS)
    for (let i = 0; i < CLIENT_STREAMS.length; i++) this.#open()
  }

  onReady(): void {
    this.note(7, 0, this.connection.maxStreams)
  }

  onSuspects(): void {
    // No user is charged.
  }

  onEnding(): void {
    // Not counted.
  }

  onStreamGone(): void {
    // Not counted.
  }

  onSlotFree(): void {
    this.note(8, 0, 0)
  }

  onGoaway(code: number): void {
    this.#goaway = true
    this.note(9, 0, code)
  }

  override onStreamEnd(): void {
    if (this.heard.length < MOST_STREAMS) this.#open()
  }

  #open(): Heard | undefined {
    const { connection } = this
    if (!connection.usable || connection.openStreams >= connection.maxStreams) return undefined
    if (this.#goaway) throw new Violation('usable behind GOAWAY')
    const number = 2 * this.heard.length + 1
    const method = METHODS[(this.#profile + number) % METHODS.length] ?? 'GET'
    const end = method === 'GET' || method === 'HEAD'
    const heard = new Heard(this, number, ((this.#profile >> 4) + number) % 3, false)
    this.heard.push(heard)
    const head = [':method', method, ':scheme', 'https', ':authority', 'a', ':path', '/api/v1/pods']
    heard.stream = connection.open(head, number % 3 === 0 ? SHARED : undefined, end, heard)
    if (end) heard.given = true
    else if (method === 'POST') heard.give(this.#profile % 32 === 1 ? 20_000 : 200, true)
    else heard.give(100, false)
    return heard
  }

  protected override openProbe(): { frames: Buffer; id: number } | undefined {
    const heard = this.#open()
    if (heard === undefined) return undefined
    return { frames: build(h2.HEADERS, h2.END_HEADERS, heard.number, PROBE), id: heard.number }
  }
}
