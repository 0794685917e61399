// A client of the demo's background traffic: one user, one HTTP/2 connection, answers only counted.

import { type ClientHttp2Session, connect } from 'node:http2'

export interface TrafficTarget {
  /** `https://127.0.0.1:8443`. */
  readonly origin: string
  /** PEM of the CA of the gateway's certificate. */
  readonly ca: string
}

const REWATCH_MS = 1000
const OK = 200

/** One HTTP/2 connection as one user, made again when it ends. */
export class TrafficClient {
  readonly #options: TrafficTarget
  readonly #token: string
  readonly #onAnswer: (status: number) => void
  #session: ClientHttp2Session | undefined
  #stopped = false

  constructor(options: TrafficTarget, token: string, onAnswer: (status: number) => void) {
    this.#options = options
    this.#token = token
    this.#onAnswer = onAnswer
  }

  /** A GET, or a merge patch when there is a body. */
  send(path: string, patch?: string): void {
    this.#request(path, patch, () => undefined)
  }

  /** Watches `path` until stopped. */
  watch(path: string): void {
    if (this.#stopped) return
    this.#request(path, undefined, () => setTimeout(() => this.watch(path), REWATCH_MS).unref())
  }

  stop(): void {
    this.#stopped = true
    this.#session?.destroy()
  }

  #request(path: string, patch: string | undefined, onEnd: () => void): void {
    if (this.#stopped) return
    const stream = this.#connected().request(
      {
        ':method': patch === undefined ? 'GET' : 'PATCH',
        ':path': path,
        authorization: `Bearer ${this.#token}`,
        accept: 'application/json',
        'user-agent': `portcullis-demo/${this.#token}`,
        ...(patch === undefined ? {} : { 'content-type': 'application/merge-patch+json' }),
      },
      { endStream: patch === undefined },
    )
    let status = 0
    stream.on('response', (headers) => {
      status = headers[':status'] ?? 0
      // A watch that has begun may go on for a minute: it counts now.
      if (status === OK) this.#onAnswer(status)
    })
    stream.on('error', () => undefined)
    stream.on('close', () => {
      if (status !== OK && !this.#stopped) this.#onAnswer(status)
      onEnd()
    })
    stream.resume()
    if (patch !== undefined) stream.end(patch)
  }

  #connected(): ClientHttp2Session {
    const known = this.#session
    if (known !== undefined && !known.closed && !known.destroyed) return known
    const session = connect(this.#options.origin, { ca: this.#options.ca })
    // The streams tell.
    session.on('error', () => undefined)
    session.on('goaway', () => session.close())
    this.#session = session
    return session
  }
}
