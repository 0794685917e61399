// A recording as asciicast v2 (docs.asciinema.org/manual/asciicast/v2): a header, then one event per line.

import { isRecord } from '../../../kit/api/json/object-shape.ts'
import type { ForwardConnection } from '../protocol/channels.ts'

/** What is recorded of a session besides its streams. Nothing of a credential, of headers or of the query but what is named here. */
export interface RecordedSession {
  readonly cluster: string
  readonly user: string
  readonly groups: readonly string[]
  /** Who acted as this user; '' = the user. */
  readonly impersonator: string
  readonly namespace: string
  readonly pod: string
  readonly container: string
  readonly kind: string
  readonly command: readonly string[]
  readonly protocol: string
  readonly auditId: string
  readonly remoteAddress: string
  /** Whether input is recorded, too. */
  readonly input: boolean
  /** Those that the query of a port-forward names. Over SPDY the connections name them, and markers do. */
  readonly ports?: readonly string[]
  /** How the bytes of a port-forward are written, which need not be text. */
  readonly dataEncoding?: typeof ONE_BYTE_PER_CODE_POINT
}

interface CastHeader {
  /** Milliseconds since the epoch. */
  readonly startMs: number
  readonly session: RecordedSession
}

/** Output, input, a new size of the terminal, and a remark of the gateway's. */
export type CastCode = 'o' | 'i' | 'r' | 'm'

export type EmitEvent = (code: CastCode, data: string) => void

export interface CastEvent {
  readonly atSeconds: number
  readonly code: CastCode
  readonly data: string
}

/** The size of a terminal until it is known. */
const WIDTH = 80
const HEIGHT = 24

export function castHeader({ startMs, session }: CastHeader): string {
  const title = `${session.namespace}/${session.pod}`
  const header = { version: 2, width: WIDTH, height: HEIGHT, timestamp: Math.floor(startMs / 1000), title }
  return `${JSON.stringify({ ...header, portcullis: { startMs, ...session } })}\n`
}

export function castEvent(atSeconds: number, code: CastCode, data: string): string {
  return `[${atSeconds.toFixed(6)},"${code}",${JSON.stringify(data)}]\n`
}

/** undefined = not an event that this program writes. */
export function parseCastEvent(line: string): CastEvent | undefined {
  const value = parsed(line)
  if (!Array.isArray(value)) return undefined
  const [at, code, data]: readonly unknown[] = value
  if (typeof at !== 'number' || typeof data !== 'string') return undefined
  if (code !== 'o' && code !== 'i' && code !== 'r' && code !== 'm') return undefined
  return { atSeconds: at, code, data }
}

/** The session of a header, as a file has it. */
export type CastHeaderFields = Readonly<Record<string, unknown>> & { readonly startMs: number }

/** The session of a header; undefined = not such a header. */
export function parseCastHeader(line: string): CastHeaderFields | undefined {
  const value = parsed(line)
  if (!isRecord(value) || value['version'] !== 2) return undefined
  const session = value['portcullis']
  if (!isRecord(session) || typeof session['startMs'] !== 'number') return undefined
  return { ...session, startMs: session['startMs'] }
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

/** How the header of a recording says that each code point of `i` and `o` is a byte. */
export const ONE_BYTE_PER_CODE_POINT = 'latin1'

const MARKER = /^connection (\d{1,15}) to port (\d{1,5})(?: |$)/

/**
 * Marks in the recording of a port-forward to which connection the bytes behind it belong.
 * @param what becomes of it; '' = bytes follow
 */
export function forwardMarker({ number, port }: ForwardConnection, what: string): string {
  return `connection ${number} to port ${port}${what === '' ? '' : ` ${what}`}`
}

/** undefined = another remark. */
export function readForwardMarker(text: string): ForwardConnection | undefined {
  const [, number, port] = MARKER.exec(text) ?? []
  return number === undefined ? undefined : { number: Number(number), port: Number(port) }
}
