// Version 1: one line of text. `PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n`

import { canonicalIp } from '../../api/validation/ip-address.ts'
import type { DeclaredEnds, HeaderReader } from './header-reader.ts'

/** With CRLF: the longest that the specification allows. */
const MAX_BYTES = 107
const PREFIX = 'PROXY '
const UNKNOWN = 'PROXY UNKNOWN'
const [CR, LF] = [0x0d, 0x0a]
const WITHOUT_ENDS = { ends: undefined }

export class HeaderV1 implements HeaderReader {
  #line = ''
  #afterCr = false

  next(byte: number): undefined | string | { readonly ends: DeclaredEnds | undefined } {
    const length = this.#line.length + (this.#afterCr ? 1 : 0)
    if (this.#afterCr) return byte === LF ? readLine(this.#line) : 'line that does not end in CRLF'
    if (byte === CR) {
      this.#afterCr = true
      return length + 2 > MAX_BYTES ? 'line too long' : undefined
    }
    // A line of this length has no room for its end.
    if (length + 3 > MAX_BYTES) return 'line too long'
    if (length < PREFIX.length && byte !== PREFIX.charCodeAt(length)) return 'no PROXY header'
    this.#line += String.fromCharCode(byte)
    return undefined
  }
}

function readLine(line: string): string | { readonly ends: DeclaredEnds | undefined } {
  // What follows it is to be ignored.
  if (line === UNKNOWN || line.startsWith(`${UNKNOWN} `)) return WITHOUT_ENDS
  const fields = line.split(' ')
  const [, protocol, source = '', destination = '', from = '', to = ''] = fields
  if (protocol !== 'TCP4' && protocol !== 'TCP6') return 'unknown protocol'
  if (fields.length !== 6) return 'not four addresses and ports'
  const [sourcePort, destinationPort] = [portOf(from), portOf(to)]
  if (sourcePort === undefined || destinationPort === undefined) return 'port that is none'
  const [sourceAddress, destinationAddress] = [addressOf(source, protocol), addressOf(destination, protocol)]
  if (sourceAddress === undefined || destinationAddress === undefined) return 'address that is none'
  return { ends: { sourceAddress, sourcePort, destinationAddress, destinationPort } }
}

/** Without leading zeros, as the specification has it. */
function portOf(text: string): number | undefined {
  if (!/^(0|[1-9]\d{0,4})$/.test(text)) return undefined
  const port = Number(text)
  return port <= 65_535 ? port : undefined
}

function addressOf(text: string, protocol: 'TCP4' | 'TCP6'): string | undefined {
  if (text.includes(':') !== (protocol === 'TCP6') || text.includes('%')) return undefined
  return canonicalIp(text)
}
