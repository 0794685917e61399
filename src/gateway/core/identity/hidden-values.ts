// Removes known secret values from text, in any encoding: plain, JSON-escaped (once, and as JSON within JSON), URL-encoded, and base64 of
// either alphabet at any alignment.

import { REDACTED } from '../../../kit/core/text/redact.ts'

/** Shorter values are words and numbers; hiding them would punch holes into everything. */
export const LEAST_SECRET = 6
/** Secrets are matched in pieces of this length, so that a text with only a part of a secret does not leak it. */
const PIECE = 32
/** About 2,000 RSA keys. */
const MAX_PIECES = 2_097_152
const FILTER_BITS = 22

/** Thrown if there are too many secrets to search for. */
class TooManySecrets extends Error {
  constructor() {
    super(`more than ${MAX_PIECES} pieces of secrets would have to be looked for, so that nothing is shown`)
    this.name = 'TooManySecrets'
  }
}

export class HiddenValues {
  readonly #pieces = new Set<string>()
  /** First characters of a piece -> lengths of such pieces, longest first. */
  readonly #lengths = new Map<string, number[]>()
  /** Prefilter by hash: whether any piece begins with such characters. */
  readonly #filter = new Uint8Array(2 ** FILTER_BITS)

  /**
   * @param values if multi-line (PEM), each line is a value; values that are too short are left out
   * @throws {TooManySecrets}
   */
  constructor(values: Iterable<string>) {
    for (const value of values) {
      for (const line of secretLines(value)) for (const form of formsOf(line)) this.#add(form)
    }
  }

  #add(form: string): void {
    for (let at = 0; at < form.length; at += PIECE) {
      const start = Math.max(0, Math.min(at, form.length - PIECE))
      const piece = form.slice(start, start + PIECE)
      if (piece.length < LEAST_SECRET || this.#pieces.has(piece)) continue
      if (this.#pieces.size >= MAX_PIECES) throw new TooManySecrets()
      this.#pieces.add(piece)
      this.#filter[hashAt(piece, 0)] = 1
      const prefix = piece.slice(0, LEAST_SECRET)
      const lengths = this.#lengths.get(prefix) ?? []
      if (!lengths.includes(piece.length)) lengths.push(piece.length)
      this.#lengths.set(
        prefix,
        lengths.sort((a, b) => b - a),
      )
    }
  }

  /** Returns the text without secrets. Cost grows with the length of the text, not with the number of secrets. */
  hide(text: string): string {
    let shown = ''
    let copied = 0
    let start = -1
    let end = 0
    for (let i = 0; i + LEAST_SECRET <= text.length; i++) {
      if (this.#filter[hashAt(text, i)] === 0) continue
      const length = this.#lengthAt(text, i)
      if (length === 0) continue
      if (start < 0 || i > end) {
        if (start >= 0) shown += text.slice(copied, start) + REDACTED
        if (start >= 0) copied = end
        start = i
      }
      end = Math.max(end, i + length)
    }
    return start < 0 ? text : shown + text.slice(copied, start) + REDACTED + text.slice(end)
  }

  /** Length of the longest piece that begins there; 0 = none. */
  #lengthAt(text: string, at: number): number {
    const lengths = this.#lengths.get(text.slice(at, at + LEAST_SECRET)) ?? []
    for (const length of lengths) {
      if (at + length <= text.length && this.#pieces.has(text.slice(at, at + length))) return length
    }
    return 0
  }
}

/** Whether no part of it can be searched for. */
export function isTooShort(value: string): boolean {
  return value !== '' && secretLines(value).length === 0
}

function secretLines(value: string): readonly string[] {
  const lines = value.split(/[\r\n]+/).map((line) => line.trim())
  return lines.filter((line) => line.length >= LEAST_SECRET && !line.startsWith('-----'))
}

function formsOf(value: string): ReadonlySet<string> {
  const escaped = JSON.stringify(value).slice(1, -1)
  const encoded = encodeURIComponent(value.toWellFormed())
  const lowerCase = encoded.replaceAll(/%../g, (code) => code.toLowerCase())
  const ofForm = new URLSearchParams({ '': value }).toString().slice(1)
  const twice = JSON.stringify(escaped).slice(1, -1)
  return new Set([value, escaped, twice, encoded, lowerCase, ofForm, ...base64Forms(value)])
}

/** The part of its base64 that does not depend on the surrounding bytes, for each of the three alignments. */
function base64Forms(value: string): readonly string[] {
  const bytes = Buffer.from(value)
  return [0, 1, 2].flatMap((shift) => {
    const text = Buffer.concat([Buffer.alloc(shift), bytes]).toString('base64')
    const form = text.slice(Math.ceil((shift * 8) / 6), Math.floor(((shift + bytes.length) * 8) / 6))
    return [form, form.replaceAll('+', '-').replaceAll('/', '_')]
  })
}

function hashAt(text: string, at: number): number {
  let hash = 0
  for (let i = 0; i < LEAST_SECRET; i++) hash = Math.imul(hash, 0x01_00_01_93) + text.charCodeAt(at + i)
  return Math.imul(hash, 0x9e_37_79_b1) >>> (32 - FILTER_BITS)
}
