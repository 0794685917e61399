// The resourceVersion of several clusters read as one: a decimal number that holds the version of each. `1`, the epoch in four digits, then for each slot
// two digits with the length of a member's version, and that version. As no part of it falls while an epoch lasts, the number grows along a stream of
// events, which is what clients may expect of resourceVersions (KEP-5504).

import { compareResourceVersions } from '../../kube/core/objects/resource-version.ts'

export interface VersionVector {
  /** 0 to EPOCHS - 1. */
  readonly epoch: number
  /** The version of each member, by slot; '' = nothing of it is known yet. */
  readonly versions: readonly string[]
}

/** As many members may be joined. */
export const MAX_MEMBERS = 64
/** Slots that members have left are not given to others: once these are in use, a new epoch begins. */
export const MAX_SLOTS = 64
/** As many as 2^128-1 has: the highest version of a member that conforms. */
const MAX_MEMBER_DIGITS = 39
const EPOCH_DIGITS = 4
const LENGTH_DIGITS = 2
const HEAD_DIGITS = 1 + EPOCH_DIGITS
export const EPOCHS: number = 10 ** EPOCH_DIGITS
export const MAX_VECTOR_DIGITS: number = HEAD_DIGITS + MAX_SLOTS * (LENGTH_DIGITS + MAX_MEMBER_DIGITS)

/** No leading zero, which another number of the same value would have (apimachinery/pkg/util/resourceversion). */
const MEMBER_VERSION = /^[1-9][0-9]*$/
const DIGITS = /^[0-9]+$/

/** @param vector with decimal versions of at most MAX_MEMBER_DIGITS, as caches keep them */
export function encodeVector({ epoch, versions }: VersionVector): string {
  let text = `1${padded(epoch, EPOCH_DIGITS)}`
  for (const version of versions) {
    // No kube-apiserver writes them, but another server may.
    const digits = version.startsWith('0') ? version.replace(/^0+/, '') : version
    text += padded(digits.length, LENGTH_DIGITS) + digits
  }
  return text
}

/**
 * @param text as a client sends it. '' and '0', which every API server understands, are not vectors.
 * @returns undefined if it is not one
 */
export function parseVector(text: string): VersionVector | undefined {
  // What is longer is not looked at.
  if (text.length < HEAD_DIGITS || text.length > MAX_VECTOR_DIGITS) return undefined
  if (!text.startsWith('1') || !DIGITS.test(text)) return undefined
  const versions: string[] = []
  for (let at = HEAD_DIGITS; at < text.length; ) {
    const start = at + LENGTH_DIGITS
    const end = start + Number(text.slice(at, start))
    if (start > text.length || end > text.length || versions.length === MAX_SLOTS) return undefined
    const version = text.slice(start, end)
    if (version !== '' && !isWellFormed(version)) return undefined
    versions.push(version)
    at = end
  }
  return { epoch: Number(text.slice(1, HEAD_DIGITS)), versions }
}

/** An empty slot is older than any version. */
export function compareSlots(a: string, b: string): number {
  if (a === '' || b === '') return a.length - b.length
  return compareResourceVersions(a, b) ?? 0
}

function isWellFormed(version: string): boolean {
  return version.length <= MAX_MEMBER_DIGITS && MEMBER_VERSION.test(version)
}

function padded(value: number, digits: number): string {
  return String(value).padStart(digits, '0')
}
