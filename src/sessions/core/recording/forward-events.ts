// What a port-forward carries, as events of an asciicast: markers say of which connection the bytes behind them are.

import type { ForwardConnection, ForwardSink } from '../protocol/channels.ts'
import type { EmitEvent } from './asciicast.ts'
import { forwardMarker } from './forward-marker.ts'

/** What is kept of a kubelet's message, each time. */
const MAX_MESSAGE_BYTES = 4096

export class ForwardEvents {
  readonly sink: { readonly ofForward: ForwardSink }
  /** How a port-forward ends says nothing of its connections. */
  readonly outcome = ''
  readonly #emit: EmitEvent
  /** The number of that of the last marker. */
  #current = 0

  /** @param input whether what clients send is recorded, too */
  constructor(input: boolean, emit: EmitEvent) {
    this.#emit = emit
    this.sink = {
      ofForward: {
        begin: (connection) => this.#mark(connection, 'begins'),
        fromClient: (connection, bytes) => {
          if (input) this.#bytes(connection, 'i', bytes)
        },
        toClient: (connection, bytes) => this.#bytes(connection, 'o', bytes),
        error: (connection, bytes) => {
          this.#mark(connection, `error: ${asBuffer(bytes).toString('utf8', 0, MAX_MESSAGE_BYTES)}`)
        },
        end: (connection) => this.#mark(connection, 'ends'),
      },
    }
  }

  #mark(connection: ForwardConnection, what: string): void {
    this.#current = connection.number
    this.#emit('m', forwardMarker(connection, what))
  }

  #bytes(connection: ForwardConnection, code: 'i' | 'o', bytes: Uint8Array): void {
    if (this.#current !== connection.number) this.#mark(connection, '')
    this.#emit(code, asBuffer(bytes).toString('latin1'))
  }
}

/** Without copying. */
function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
}
