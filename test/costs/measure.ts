// What reading an input costs: processor time of this thread, the least of some tries, so that it matters neither how fast the
// machine is nor what else runs on it; and the heap that the result holds.

import { GCProfiler, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Parser } from './parser.ts'
import { KIB, repeat, type Shape, write } from './shapes.ts'

/** A character of the largest input costs at most so many times what one of 16 KiB does: caches and garbage collection take
 * their part of long inputs; a square would be dearer by how much longer it is. */
export const MOST = 3
/**
 * What costs less for a character is not compared: it is all noise. Some processors predict every branch of a short input that is read again
 * and again (1.3 ns), and not of one twice as long (7 ns).
 */
const NEXT_TO_NOTHING_NS = 3
const SMALLEST = KIB
const REFERENCE = 16 * KIB
const TRIAL_MICROSECONDS = 500
const TRIALS = 3
/** As often is an input read again that seems too expensive, before it counts as that. */
const SECOND_LOOKS = 100
/** And at least so long: on a busy machine V8's compiler takes its time, and until then code is interpreted. */
const LEAST_SPENT_NS = 2e8
/** And no longer: what takes so long is not made so by the machine. */
const MOST_SPENT_NS = 1e9

export interface Growth {
  /** Characters of the input that the others are compared with, and nanoseconds for each. */
  readonly reference: number
  readonly referenceNs: number
  /** The largest input, or the first that was too expensive. */
  readonly length: number
  readonly ns: number
  /** The ratio of the two, where what is next to nothing counts as 1. */
  readonly ratio: number
}

/** Reads the shape at each size up to the limit, and stops at the first at which a character costs more than `most` times as much. */
export function growth(parser: Parser, shape: Shape, most: number, limit: number = parser.limit): Growth {
  const reference = Math.max(SMALLEST, Math.min(REFERENCE, limit / 16))
  const least = parser.fillsMaps ? nanosecondsOfMaps() : NEXT_TO_NOTHING_NS
  let referenceNs = Number.POSITIVE_INFINITY
  let last: Growth | undefined
  for (const length of sizes(limit)) {
    const read = parser.open(write(shape, length))
    if (length < reference) {
      // Compiled by the time it counts.
      nanoseconds(read, 1)
      continue
    }
    if (length === reference) referenceNs = nanoseconds(read, TRIALS) / length
    const bound = most * Math.max(referenceNs, least)
    let ns = nanoseconds(read, 1) / length
    for (let look = 0, spent = 0; ns > bound && spent < MOST_SPENT_NS; look++) {
      if (look >= SECOND_LOOKS && spent >= LEAST_SPENT_NS) break
      const again = nanoseconds(read, 1)
      ns = Math.min(ns, again / length)
      spent += again
    }
    last = { reference, referenceNs, length, ns, ratio: ns / Math.max(referenceNs, least) }
    if (ns > bound) break
  }
  if (last === undefined) throw new Error(`${parser.name}: a limit of ${limit} is too small to compare`)
  return last
}

let ofMaps: number | undefined

/**
 * For each character of a JSON object, parsed and put into a map: V8 holds objects of more than a thousand members in another way, and
 * a processor reaches those of a hundred thousand through its slower memory. That is not the fault of code that does nothing else.
 */
function nanosecondsOfMaps(): number {
  if (ofMaps === undefined) {
    const text = write(repeat('"k{n}":0,', '{', '"a":0}'), 256 * KIB)
    const fill = (): unknown => new Map(Object.entries(JSON.parse(text)))
    ofMaps = nanoseconds(fill, TRIALS) / text.length
  }
  return ofMaps
}

/** From the smallest in steps of two; the last is the limit itself. */
function sizes(limit: number): number[] {
  const all: number[] = []
  for (let size = SMALLEST; size < limit; size *= 2) all.push(size)
  return [...all, limit]
}

/** The best of some trials: what else the process did in the others, it did not do in that one. */
export function nanoseconds(read: () => unknown, trials: number): number {
  let best = Number.POSITIVE_INFINITY
  for (let trial = 0; trial < trials; trial++) {
    const start = threadMicroseconds()
    let rounds = 0
    let used = 0
    while (used < TRIAL_MICROSECONDS) {
      read()
      rounds++
      used = threadMicroseconds() - start
    }
    best = Math.min(best, (used * 1000) / rounds)
  }
  return best
}

/** Linux brings the time of a running thread up to date only at a tick, or when the whole process is asked for. */
function threadMicroseconds(): number {
  process.cpuUsage()
  const { user, system } = process.threadCpuUsage()
  return user + system
}

/**
 * Bytes of heap, and outside of it, that the results hold for each character of the input.
 * @param most is enough to know: where a look at young objects alone finds no more, the whole heap is not collected, which takes longer than all else
 */
export function heldBytes(parser: Parser, shape: Shape, length: number, most = 0): number {
  const read = parser.open(write(shape, length))
  read()
  const rounds = Math.max(1, Math.ceil(MEASURED_CHARACTERS / length))
  const results: unknown[] = new Array(rounds)
  const fill = (): void => {
    for (let round = 0; round < rounds; round++) results[round] = read()
  }
  const atMost = grownBytes(fill) / (rounds * length)
  if (atMost <= most) return atMost
  results.fill(undefined)
  const before = usedBytes()
  fill()
  const used = usedBytes() - before
  results.length = 0
  return used / (rounds * length)
}

/** By how much all that is used grows, with what has died old: at least what `fill` keeps. Infinity: the heap was collected meanwhile, nothing is known. */
function grownBytes(fill: () => void): number {
  const collections = new GCProfiler()
  collections.start()
  const before = usedBytes('minor')
  fill()
  const grown = usedBytes('minor') - before
  const { statistics } = collections.stop()
  return statistics.every(({ gcType }) => gcType === 'Scavenge') ? grown : Number.POSITIVE_INFINITY
}

/** So much is read for a measurement of memory: what the process itself allocates in the meantime is little beside it. */
const MEASURED_CHARACTERS = 256 * KIB

setFlagsFromString('--expose-gc')
const collect: unknown = runInNewContext('gc')

function usedBytes(type: 'major' | 'minor' = 'major'): number {
  if (typeof collect === 'function') collect({ type })
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}
