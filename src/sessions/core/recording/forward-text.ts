// The recording of a port-forward as lines for a terminal: connection, port, direction, and what passed. Only printable ASCII gets there; every other byte is
// escaped, since a terminal would obey some.

import { printable } from '../../../kit/core/text/printable.ts'
import type { ForwardConnection } from '../protocol/channels.ts'
import { type CastEvent, forwardMarker, readForwardMarker } from './asciicast.ts'

const ESCAPED = /[^ -~]|\\/g
const SHORT: ReadonlyMap<string, string> = new Map([
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
  ['\\', '\\\\'],
])

export class ForwardText {
  #connection: ForwardConnection = { number: 0, port: 0 }

  /** @returns whole lines; undefined for a remark of no connection */
  show({ code, data }: CastEvent): string | undefined {
    if (code === 'm') return this.#marked(data)
    if (code === 'r') return ''
    const { number, port } = this.#connection
    const head = `${number}:${port} ${code === 'i' ? '>' : '<'} `
    return data
      .split(/(?<=\n)/)
      .map((line) => `${head}${line.replaceAll(ESCAPED, escaped)}\n`)
      .join('')
  }

  #marked(text: string): string | undefined {
    const connection = readForwardMarker(text)
    if (connection === undefined) return undefined
    this.#connection = connection
    // The bytes that follow have it at the head of their lines.
    return text === forwardMarker(connection, '') ? '' : `${printable(text)}\n`
  }
}

/** A byte, as the code point of the same number. */
function escaped(byte: string): string {
  return SHORT.get(byte) ?? `\\x${byte.charCodeAt(0).toString(16).padStart(2, '0')}`
}

/** The bytes of one connection in one direction. */
export class ForwardBytes {
  readonly #number: number
  readonly #code: 'i' | 'o'
  #isCurrent = false
  /** Whether the recording has such a connection. */
  isFound = false

  constructor(number: number, code: 'i' | 'o') {
    this.#number = number
    this.#code = code
  }

  /** undefined = the event has none of them. */
  take({ code, data }: CastEvent): Buffer | undefined {
    if (code === 'm') {
      const connection = readForwardMarker(data)
      if (connection === undefined) return undefined
      this.#isCurrent = connection.number === this.#number
      this.isFound ||= this.#isCurrent
    }
    return this.#isCurrent && code === this.#code ? Buffer.from(data, 'latin1') : undefined
  }
}
