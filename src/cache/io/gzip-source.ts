// Long answers are compressed for clients that take gzip, as kube-apiserver does it (apiserver/pkg/endpoints/handlers/responsewriters/writers.go): by
// zlib's own threads, part by part, as fast as the client reads.

import { crc32, deflateRaw, constants as ZLIB, type ZlibOptions } from 'node:zlib'
import { type Deflated, GZIP_HEAD, gzipTail, joinedCrc, storedBlocks } from '../core/bytes/deflated.ts'

/** kube-apiserver's. A shorter answer is sent as it is. */
export const LEAST_GZIP_BYTES: number = 128 * 1024
/** In each thread, of answers that share nothing; beyond it they are sent as they are. A client that reads slowly holds one of them. */
export const MOST_COMPRESSING = 16
/** A part, about, before it is compressed. In smaller ones an answer is larger, and a larger one takes longer to make again when an object changes. */
export const DEFLATED_BYTES: number = 96 * 1024
/** A part that is compressed, what zlib keeps for it, and what comes of it. */
export const GZIP_BYTES: number = 640 * 1024
/** kube-apiserver's level, the least CPU. Each part is a whole number of octets, and the next one needs nothing of it. */
const DEFLATE: ZlibOptions = { level: 1, finishFlush: ZLIB.Z_SYNC_FLUSH }

let compressing = 0

/** @param acceptEncoding the value of Accept-Encoding; weights are read as kube-apiserver reads them: `gzip;q=1` is none */
export function takesGzip(acceptEncoding: string): boolean {
  return acceptEncoding.split(',').some((token) => token.trim() === 'gzip')
}

/** Whether another answer may be compressed that shares nothing. */
export function canCompress(): boolean {
  return compressing < MOST_COMPRESSING
}

/** The answer that goes out. */
export interface Outgoing {
  /** There may be more to send. */
  proceed(): void
  drop(): void
}

/** The parts that an answer is compressed in. */
export interface DeflatedSource {
  /** The answer that these are the parts of. */
  attach(answer: Outgoing): void
  /** The next one. undefined = none yet: the answer is told to proceed. 'end' = that was all. */
  next(): Deflated | undefined | 'end'
  over(): void
}

/** @param plain stays as it is meanwhile @param done is called later; undefined = zlib failed */
export function deflate(plain: Buffer, done: (part: Deflated | undefined) => void): void {
  deflateRaw(plain, DEFLATE, (error, bytes) => {
    done(error === null ? { bytes, crc: crc32(plain), length: plain.length } : undefined)
  })
}

/** A few bytes as they are, at once. */
export function stored(plain: Buffer): Deflated {
  return { bytes: storedBlocks(plain), crc: crc32(plain), length: plain.length }
}

export class GzipSource {
  readonly #parts: DeflatedSource
  readonly #over: () => void
  #isBegun = false
  #isEnded = false
  /** The checksum and the length of the parts so far. */
  #crc = 0
  #length = 0

  constructor(parts: DeflatedSource, over: () => void) {
    this.#parts = parts
    this.#over = over
  }

  /** The answer that this is the source of. */
  attach(answer: Outgoing): void {
    this.#parts.attach(answer)
  }

  next(): Buffer | undefined | 'end' {
    if (!this.#isBegun) {
      this.#isBegun = true
      return GZIP_HEAD
    }
    if (this.#isEnded) return 'end'
    const part = this.#parts.next()
    if (part === undefined) return undefined
    if (part === 'end') {
      this.#isEnded = true
      return gzipTail(this.#crc, this.#length)
    }
    this.#crc = joinedCrc(this.#crc, part.crc, part.length)
    this.#length += part.length
    return part.bytes
  }

  over(): void {
    this.#parts.over()
    this.#over()
  }
}

/** Parts of an answer that shares nothing, one at a time. */
export class OwnParts implements DeflatedSource {
  readonly #piece: () => Buffer | undefined
  #answer: Outgoing | undefined
  #ready: Deflated | undefined
  #isBusy = false

  /** @param piece the next one, valid until the next call; undefined = that was all */
  constructor(piece: () => Buffer | undefined) {
    compressing++
    this.#piece = piece
  }

  attach(answer: Outgoing): void {
    this.#answer = answer
  }

  next(): Deflated | undefined | 'end' {
    const ready = this.#ready
    this.#ready = undefined
    if (ready !== undefined) return ready
    if (this.#isBusy) return undefined
    const piece = this.#piece()
    if (piece === undefined) return 'end'
    this.#isBusy = true
    // Other answers of this thread are joined in the same memory meanwhile.
    deflate(Buffer.from(piece), (part) => {
      this.#isBusy = false
      this.#ready = part
      if (part === undefined) this.#answer?.drop()
      else this.#answer?.proceed()
    })
    return undefined
  }

  over(): void {
    compressing--
    this.#answer = undefined
    this.#ready = undefined
  }
}
