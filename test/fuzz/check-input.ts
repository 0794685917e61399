// One input of a campaign: a session, mutated, given to a connection whole and in pieces. Nothing may throw, the outcome
// must be the same, and everything must hold that subject.ts checks.

import { joinInto } from './build-frames.ts'
import { ClientSubject } from './client-subject.ts'
import { mutate } from './mutations.ts'
import { Random } from './random.ts'
import { ServerSubject } from './server-subject.ts'
import { clientSession, serverSession } from './sessions.ts'
import type { Subject } from './subject.ts'

export interface Input {
  readonly side: 'server' | 'client'
  /** How the other end of the seam behaves. */
  readonly profile: number
  /** What the peer sends; joined, they are the bytes. */
  readonly frames: readonly Buffer[]
  /** Decides how the bytes are cut. */
  readonly cut: number
}

const PROFILES = 1_000
/** One in so many inputs has its answers' heads read, too: that costs as much as all the rest. */
const READ_HEADS_EVERY = 8
const VALID_EVERY = 16
const INTERLEAVED_EVERY = 5
const EXACT_EVERY = 8

/** Input `index` of the campaign `seed`. */
export function makeInput(seed: number, index: number): Input {
  const random = new Random(seed, index)
  const side = random.oneIn(2) ? 'server' : 'client'
  const make = side === 'server' ? clientSession : serverSession
  const frames = make(random)
  if (!random.oneIn(VALID_EVERY)) mutate(frames, random, () => make(random))
  return { side, profile: random.below(PROFILES), frames, cut: random.below(2 ** 31) }
}

/** The memory is used again for the next input. */
function bytesOf({ frames }: Input): Buffer {
  let length = 0
  for (const frame of frames) length += frame.length
  return length <= SCRATCH.length ? joinInto(SCRATCH, frames) : Buffer.concat(frames)
}

const SCRATCH = Buffer.alloc(1_000_000)

/** '' or what is wrong. */
export function checkInput(input: Input): string {
  const bytes = bytesOf(input)
  try {
    const whole = start(input, bytes)
    whole.feed(bytes)
    whole.drainOutput()
    const pieces = start(input, bytes)
    feedPieces(pieces, bytes, input.cut, false)
    pieces.drainOutput()
    const difference = compare(whole, pieces)
    if (difference !== '') return difference
    whole.checkNothingStalls()
    whole.checkNothingLeaks()
    if (input.cut % EXACT_EVERY === 0) whole.checkWindowExact()
    whole.checkEnd()
    pieces.checkEnd()
    if (input.cut % INTERLEAVED_EVERY === 0) checkInterleaved(input, bytes)
    return ''
  } catch (error) {
    return error instanceof Error ? (error.stack ?? error.message) : String(error)
  }
}

/** Whether a session that was not mutated leaves the connection open. */
export function survivesValid(seed: number, index: number): boolean {
  const random = new Random(seed, index)
  const side = random.oneIn(2) ? 'server' : 'client'
  const frames = side === 'server' ? clientSession(random) : serverSession(random)
  const input: Input = { side, profile: random.below(PROFILES), frames, cut: 1 }
  const bytes = bytesOf(input)
  const subject = start(input, bytes)
  subject.feed(bytes)
  return !subject.isClosed
}

/** Output is taken between the pieces: other bytes come of it, by right, but nothing may break. */
function checkInterleaved(input: Input, bytes: Buffer): void {
  const subject = start(input, bytes)
  feedPieces(subject, bytes, input.cut ^ 0x5555, true)
  subject.drainOutput()
  subject.checkNothingStalls()
  subject.checkNothingLeaks()
  subject.checkEnd()
}

function start(input: Input, bytes: Buffer): Subject {
  const readHeads = input.cut % READ_HEADS_EVERY === 0
  const subject =
    input.side === 'server' ? new ServerSubject(input.profile, readHeads) : new ClientSubject(input.profile, readHeads)
  subject.received.read(bytes, input.side === 'server' ? 24 : 0)
  return subject
}

function feedPieces(subject: Subject, bytes: Buffer, cut: number, takeOutput: boolean): void {
  const random = new Random(cut, 0)
  // Now and then a byte at a time, as far as it goes.
  const largest = random.oneIn(8) ? 1 : random.oneIn(2) ? 60 : 1_000
  let at = 0
  for (let pieces = 0; at < bytes.length; pieces++) {
    const size = pieces >= MOST_PIECES ? bytes.length - at : 1 + random.below(largest)
    subject.feed(bytes.subarray(at, Math.min(bytes.length, at + size)))
    at += size
    if (takeOutput && random.oneIn(2)) subject.drainOutput()
    // Where the small pieces are differs from input to input.
    if (pieces === 0 && random.oneIn(2)) {
      const skip = random.below(bytes.length)
      subject.feed(bytes.subarray(at, Math.min(bytes.length, at + skip)))
      at += skip
    }
  }
}

const MOST_PIECES = 40

function compare(whole: Subject, pieces: Subject): string {
  if (whole.isClosed !== pieces.isClosed) return `whole: closed ${whole.isClosed}; in pieces: closed ${pieces.isClosed}`
  if (whole.sent.goaways.join() !== pieces.sent.goaways.join())
    return `whole: GOAWAY ${whole.sent.goaways.join()}; in pieces: GOAWAY ${pieces.sent.goaways.join()}`
  if (whole.events !== pieces.events) return 'whole and in pieces: different events'
  if (whole.sent.checksum !== pieces.sent.checksum) return 'whole and in pieces: different output'
  return ''
}
