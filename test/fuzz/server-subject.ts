// The server's side under test, with a request path that answers in different ways.

import { createHttp2Counters, type Http2Counters } from '../../src/http2/counters.ts'
import { ServerConnection } from '../../src/http2/server.ts'
import type { HeaderList, Peer, Stream } from '../../src/kit/api/stream.ts'
import * as h2 from '../harness/frames/h2-frames.ts'
import { build } from './build-frames.ts'
import { Heard, LIMITS, NOW_MS, Subject } from './subject.ts'

const PEER = { id: 1 } as Peer
const ANSWER: HeaderList = [':status', '200', 'content-type', 'application/json', 'x-request-id', 'abc']
const MODES = 7
const COUNTERS: Http2Counters = createHttp2Counters()
/** RFC 7541 appendix A: POST, https, /. */
const PROBE = Buffer.from([0x83, 0x87, 0x84])
const LARGEST_PROBE = 2 ** 31 - 3

export class ServerSubject extends Subject {
  protected readonly connection: ServerConnection
  protected readonly givesBackWhenTaken: boolean = true
  readonly #profile: number

  /** `profile` decides how the request path behaves. */
  constructor(profile: number, readHeads: boolean) {
    super(readHeads)
    this.#profile = profile
    this.connection = new ServerConnection(
      LIMITS.server,
      COUNTERS,
      this,
      PEER,
      (_peer, stream, head, end) => this.#onRequest(stream, head, end),
      NOW_MS,
    )
  }

  #onRequest(stream: Stream, head: HeaderList, end: boolean): Heard {
    const number = (stream as unknown as { id: number }).id
    const heard = new Heard(this, number, ((this.#profile >> 4) + number) % 3, true)
    heard.stream = stream
    heard.ended = end
    this.heard.push(heard)
    this.note(6, number, head.length)
    const mode = this.#modeOf(number)
    if (mode === 0) {
      stream.headers(ANSWER, false)
      heard.give(100, true)
    } else if (mode === 3) {
      stream.headers(ANSWER, false)
      heard.give(50, false)
    } else if (mode === 4) heard.reset('internal')
    if (end) this.onStreamEnd(heard)
    return heard
  }

  override onStreamEnd(heard: Heard): void {
    const { stream } = heard
    if (stream === undefined || heard.resetHeard) return
    switch (this.#modeOf(heard.number)) {
      case 1:
        stream.headers(ANSWER, false)
        // In two parts: the window may close between them, or shrink below zero.
        heard.give(60, false)
        heard.give(300, true)
        return
      case 2:
        stream.headers(ANSWER, false)
        heard.give(this.#profile % 32 === 0 ? 70_000 : 400, false)
        heard.given = true
        stream.trailers(['x-sum', '7'])
        return
      case 5:
        heard.reset('cancel')
        return
      case 6:
        stream.headers([':status', '103', 'link', '</x>'], false)
        heard.given = true
        stream.headers(ANSWER, true)
        return
      default:
    }
  }

  #modeOf(number: number): number {
    return (this.#profile + (number >> 1)) % MODES
  }

  protected override openProbe(): { frames: Buffer; id: number } | undefined {
    if (this.received.lastStream > LARGEST_PROBE - 2) return undefined
    const id = (this.received.lastStream + 1) | 1
    return { frames: build(h2.HEADERS, h2.END_HEADERS, id, PROBE), id }
  }
}
