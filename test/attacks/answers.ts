// Counts what an attack was answered: status codes ('200'), 'RST_STREAM CODE', 'GOAWAY CODE', 'closed' (a connection that the
// gateway ended) and 'refused' (one that it did not accept).

const CODES = [
  'NO_ERROR',
  'PROTOCOL_ERROR',
  'INTERNAL_ERROR',
  'FLOW_CONTROL_ERROR',
  'SETTINGS_TIMEOUT',
  'STREAM_CLOSED',
  'FRAME_SIZE_ERROR',
  'REFUSED_STREAM',
  'CANCEL',
  'COMPRESSION_ERROR',
  'CONNECT_ERROR',
  'ENHANCE_YOUR_CALM',
  'INADEQUATE_SECURITY',
  'HTTP_1_1_REQUIRED',
]

export class Answers {
  readonly #counts = new Map<string, number>()
  /** Connections that were opened, whether or not they were accepted; and those of them that were, TLS included. */
  connections = 0
  accepted = 0
  /** Bytes that were handed to the system, and bytes that came back. */
  sentBytes = 0
  receivedBytes = 0

  count(answer: string): void {
    this.#counts.set(answer, (this.#counts.get(answer) ?? 0) + 1)
  }

  /** @param code an error code of HTTP/2 */
  frame(type: 'RST_STREAM' | 'GOAWAY', code: number): void {
    this.count(`${type} ${CODES[code] ?? code}`)
  }

  get counts(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#counts)
  }
}
