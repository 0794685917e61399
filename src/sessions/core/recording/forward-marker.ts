// Markers in the recording of a port-forward: to which connection the bytes behind them belong.

import type { ForwardConnection } from '../protocol/channels.ts'

/** How the header of a recording says that each code point of `i` and `o` is a byte. */
export const ONE_BYTE_PER_CODE_POINT = 'latin1'

const MARKER = /^connection (\d{1,15}) to port (\d{1,5})(?: |$)/

/** @param what becomes of it; '' = bytes follow */
export function forwardMarker({ number, port }: ForwardConnection, what: string): string {
  return `connection ${number} to port ${port}${what === '' ? '' : ` ${what}`}`
}

/** undefined = another remark. */
export function readForwardMarker(text: string): ForwardConnection | undefined {
  const [, number, port] = MARKER.exec(text) ?? []
  return number === undefined ? undefined : { number: Number(number), port: Number(port) }
}
