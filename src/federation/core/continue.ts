// Where a list of several clusters goes on: the versions of all members at its beginning, the member whose turn it is, the last of its objects that was sent, and
// the member's own token behind that. It is told to clients, and says nothing that they could not make up themselves.

import { isRecord } from '../../kit/api/json/object-shape.ts'
import { encodeVector, MAX_SLOTS, parseVector, type VersionVector } from './vectors.ts'

export interface ContinuePlace {
  /** All pages are of these versions. */
  readonly vector: VersionVector
  /** Members in front of it are done. */
  readonly slot: number
  /** Key of the last object that was sent; '' = from the beginning of this member. */
  readonly token: string
  /** With which the member's own list goes on there; '' = it was not asked for one. */
  readonly next: string
}

const FORMAT = 'portcullis.io/v1'
/** What a vector of all slots, the longest key of an object and the token of a member have. */
export const MAX_CONTINUE = 8192

export function encodeContinue({ vector, slot, token, next }: ContinuePlace): string {
  const value = { v: FORMAT, rv: encodeVector(vector), slot, token, ...(next !== '' && { next }) }
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

/** @returns undefined: it is not one of this gateway's */
export function parseContinue(text: string): ContinuePlace | undefined {
  if (text.length > MAX_CONTINUE) return undefined
  const value = parsed(Buffer.from(text, 'base64url').toString())
  if (!isRecord(value)) return undefined
  const { v, rv, slot, token, next = '' } = value
  if (v !== FORMAT || typeof rv !== 'string' || typeof token !== 'string' || typeof next !== 'string') return undefined
  if (typeof slot !== 'number' || !Number.isInteger(slot) || slot < 0 || slot >= MAX_SLOTS) return undefined
  const vector = parseVector(rv)
  return vector && { vector, slot, token, next }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
