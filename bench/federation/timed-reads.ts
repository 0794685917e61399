// Reads with their times: lists, lists in pages, and watches from their first byte to the end of the state. Bytes are counted and thrown away.

import type { ClientHttp2Session, ClientHttp2Stream } from 'node:http2'
import type { KeyPair } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Open } from '../../test/harness/clients/h2-client.ts'
import type { Target } from './world.ts'

export interface TimedRead {
  /** From the request to the first byte of the body. */
  readonly firstMs: number
  /** To the last one, of the last page. */
  readonly ms: number
  readonly bytes: number
  readonly pages: number
  /** That comes with the first answer. */
  readonly warning: string
}

/** A watch that has brought its state. */
export interface OpenTimedWatch extends TimedRead {
  /** Resolves with the time, as `performance.now()`, at which this text came. */
  seen(text: string): Promise<number>
  close(): void
}

interface Answer extends TimedRead {
  /** The first bytes of the body. */
  readonly head: string
}

const WINDOW_BYTES = 16 * 1024 * 1024
/** A list has its version and its token within these. */
const HEAD_BYTES = 4096
const STATE_END = '"k8s.io/initial-events-end":"true"'
const STATE =
  '?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=3600'

export class TimedReads {
  readonly #session: ClientHttp2Session
  readonly #target: Target

  constructor(target: Target, certificate: KeyPair) {
    this.#target = target
    this.#session = h2Connect({ port: target.port, serverName: target.host, certificate, streamWindow: WINDOW_BYTES })
    this.#session.on('connect', () => this.#session.setLocalWindowSize(WINDOW_BYTES))
  }

  /** @throws unless it is answered with 200 */
  async read(path: string): Promise<Answer> {
    const fromMs = performance.now()
    const stream = this.#open(path)
    return await new Promise((resolve, reject) => {
      let firstMs = 0
      let bytes = 0
      let head = ''
      const { warning } = this.#begun(stream, reject)
      stream.on('data', (chunk: Buffer) => {
        if (firstMs === 0) firstMs = performance.now() - fromMs
        if (head.length < HEAD_BYTES) head += chunk.toString('latin1', 0, HEAD_BYTES)
        bytes += chunk.length
      })
      stream.on('end', () => {
        resolve({ firstMs, ms: performance.now() - fromMs, bytes, pages: 1, warning: warning(), head })
      })
    })
  }

  /** All pages of a list. */
  async pages(path: string, limit: number): Promise<TimedRead> {
    const fromMs = performance.now()
    const first = await this.read(`${path}?limit=${limit}`)
    let { bytes, head } = first
    let pages = 1
    for (let token = tokenIn(head); token !== ''; token = tokenIn(head)) {
      const page = await this.read(`${path}?limit=${limit}&continue=${encodeURIComponent(token)}`)
      bytes += page.bytes
      head = page.head
      pages++
    }
    return { ...first, ms: performance.now() - fromMs, bytes, pages }
  }

  /** Resolves when it has brought the state. */
  async watch(path: string): Promise<OpenTimedWatch> {
    const fromMs = performance.now()
    const stream = this.#open(path + STATE)
    let firstMs = 0
    let bytes = 0
    let rest = ''
    let awaited: { readonly text: string; readonly resolve: (atMs: number) => void } | undefined
    const seen = (text: string): Promise<number> => {
      return new Promise((resolve) => {
        awaited = { text, resolve }
      })
    }
    const begun = Promise.withResolvers<never>()
    const { warning } = this.#begun(stream, begun.reject)
    stream.on('end', () => begun.reject(new Error(`${this.#target.name}: the watch has ended`)))
    stream.on('data', (chunk: Buffer) => {
      if (firstMs === 0) firstMs = performance.now() - fromMs
      bytes += chunk.length
      if (awaited === undefined) return
      const { text, resolve } = awaited
      const some = rest + chunk.toString('latin1')
      rest = some.slice(-text.length)
      if (!some.includes(text)) return
      awaited = undefined
      rest = ''
      resolve(performance.now())
    })
    const endMs = await Promise.race([seen(STATE_END), begun.promise])
    return { firstMs, ms: endMs - fromMs, bytes, pages: 1, warning: warning(), seen, close: () => stream.close() }
  }

  close(): void {
    this.#session.destroy()
  }

  #open(path: string): ClientHttp2Stream {
    return h2Open(this.#session, [':authority', this.#target.host, ':path', path, 'accept', 'application/json'])
  }

  #begun(stream: ClientHttp2Stream, reject: (error: Error) => void): { warning(): string } {
    let warning = ''
    stream.on('response', (headers) => {
      warning = String(headers['warning'] ?? '')
      const status = headers[':status']
      if (status !== 200) reject(new Error(`${this.#target.name}: answered with ${status}`))
    })
    stream.on('error', reject)
    return { warning: () => warning }
  }
}

function tokenIn(head: string): string {
  return /^\{[^[]*?"continue":"([^"]*)"/.exec(head)?.[1] ?? ''
}
