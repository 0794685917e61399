// Decodes strings and labels of objects, those that many objects have once for all.

import type { Labels } from '../../../kube/core/selectors/label-requirement.ts'
import { malformed } from './malformed.ts'
import { BACKSLASH, isNull, OPEN_MAP } from './skip-json.ts'

/**
 * Values that many objects have: namespaces, nodes, the labels of a ReplicaSet's pods. Those that were seen last are kept once for all objects, which
 * is faster than to decode them again, and takes less memory.
 */
export class KnownValues {
  readonly #texts = new Array<string>(KNOWN).fill('')
  readonly #labels = new Array<KnownLabels | undefined>(KNOWN).fill(undefined)

  /** @param start of the opening quote */
  text(json: Buffer, start: number, end: number): string {
    const length = end - start - 2
    if (length > MAX_KNOWN_TEXT) return stringAt(json, start, end)
    const place = hashOf(json, start, end) % KNOWN
    const known = this.#texts[place] ?? ''
    if (known.length === length && isText(json, start + 1, known)) return known
    const text = stringAt(json, start, end)
    // Bytes are compared with characters: only if each is one.
    if (text.length === length) this.#texts[place] = text
    return text
  }

  labels(json: Buffer, start: number, end: number): Labels {
    if (end - start > MAX_KNOWN_LABELS) return stringsOf(json, start, end, 'labels')
    const place = hashOf(json, start, end) % KNOWN
    const known = this.#labels[place]
    if (known?.json.length === end - start && json.compare(known.json, 0, end - start, start, end) === 0)
      return known.labels
    const labels = stringsOf(json, start, end, 'labels')
    this.#labels[place] = { json: Buffer.from(json.subarray(start, end)), labels }
    return labels
  }
}

interface KnownLabels {
  readonly json: Buffer
  readonly labels: Labels
}

export const NO_LABELS: Labels = Object.freeze({})
const KNOWN = 1024
const MAX_KNOWN_TEXT = 256
const MAX_KNOWN_LABELS = 1024
const FNV_OFFSET = 0x811c9dc5
const FNV_PRIME = 0x01000193

/** Who can choose values that collide gains that they are decoded. */
function hashOf(json: Buffer, start: number, end: number): number {
  let hash = FNV_OFFSET
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ (json[at] ?? 0), FNV_PRIME)
  return (hash ^ (hash >>> 15)) >>> 0
}

/** Whether the bytes that begin at `start` are this ASCII text. */
function isText(json: Buffer, start: number, text: string): boolean {
  for (let i = 0; i < text.length; i++) if (json[start + i] !== text.charCodeAt(i)) return false
  return true
}

/** The string [start, end), with its quotes. */
export function stringAt(json: Buffer, start: number, end: number): string {
  for (let at = start + 1; at < end; at++) {
    if (json[at] === BACKSLASH) return JSON.parse(json.toString('utf8', start, end))
  }
  return json.toString('utf8', start + 1, end - 1)
}

/** Labels or annotations. */
export function stringsOf(json: Buffer, start: number, end: number, what: string): Labels {
  if (isNull(json, start)) return {}
  if (json[start] !== OPEN_MAP) throw malformed(`the ${what} are not a map`)
  const map: Record<string, unknown> = JSON.parse(json.toString('utf8', start, end))
  for (const value of Object.values(map)) if (typeof value !== 'string') throw malformed(`the ${what} are not strings`)
  return map as Labels
}
