// Strings and labels that many objects have, once for all of them.

import type { Labels } from '../../../kube/core/selectors/label-requirement.ts'

/** How many of each are kept: those that were seen last. */
const KNOWN = 1024
const MAX_KNOWN_TEXT = 256
const MAX_KNOWN_LABELS = 1024
const FNV_OFFSET = 0x811c9dc5
const FNV_PRIME = 0x01000193

/**
 * Namespaces, nodes, the labels of a ReplicaSet's pods: to find them again by their bytes is faster than to decode them, and all objects share one
 * string or map.
 */
export class KnownValues {
  readonly #texts = new Array<string>(KNOWN).fill('')
  readonly #labels = new Array<KnownLabels | undefined>(KNOWN).fill(undefined)

  /**
   * A string whose bytes are [start, end).
   * @param decode what those bytes mean, if they are not known
   */
  text(bytes: Buffer, start: number, end: number, decode: () => string): string {
    const length = end - start
    if (length > MAX_KNOWN_TEXT) return decode()
    const place = hashOf(bytes, start, end) % KNOWN
    const known = this.#texts[place] ?? ''
    if (known.length === length && isText(bytes, start, known)) return known
    const text = decode()
    // Bytes are compared with characters: only if each is one. Escapes and all but ASCII take more.
    if (text.length === length) this.#texts[place] = text
    return text
  }

  /** Labels whose bytes are [start, end), in whatever encoding. */
  labels(bytes: Buffer, start: number, end: number, decode: () => Labels): Labels {
    const length = end - start
    if (length > MAX_KNOWN_LABELS) return decode()
    const place = hashOf(bytes, start, end) % KNOWN
    const known = this.#labels[place]
    if (known?.bytes.length === length && bytes.compare(known.bytes, 0, length, start, end) === 0) return known.labels
    const labels = decode()
    this.#labels[place] = { bytes: Buffer.from(bytes.subarray(start, end)), labels }
    return labels
  }
}

interface KnownLabels {
  readonly bytes: Buffer
  readonly labels: Labels
}

/** Who chooses values that collide only makes them be decoded. */
function hashOf(bytes: Buffer, start: number, end: number): number {
  let hash = FNV_OFFSET
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ (bytes[at] ?? 0), FNV_PRIME)
  return (hash ^ (hash >>> 15)) >>> 0
}

/** Whether the bytes that begin at `start` are this ASCII text. */
function isText(bytes: Buffer, start: number, text: string): boolean {
  for (let i = 0; i < text.length; i++) if (bytes[start + i] !== text.charCodeAt(i)) return false
  return true
}
