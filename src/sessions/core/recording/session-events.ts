// What a session carries, as events of an asciicast: what an exec or attach shows, and how it ended; of a port-forward, the bytes of its connections, with
// markers that say of which connection they are.

import { isRecord, listOf, recordOf, textOf } from '../../../kit/api/json/object-shape.ts'
import type { ChannelSink, ForwardConnection, ForwardSink, SessionChannel } from '../protocol/channels.ts'
import { type EmitEvent, forwardMarker } from './asciicast.ts'

/** What is kept of the message with which a kubelet ends a session. */
const MAX_ERROR_CHARACTERS = 4096
/** The size of a terminal: two numbers in JSON. */
const MAX_RESIZE_CHARACTERS = 256
const MOST_COLUMNS = 10_000

/** What an exec or attach shows. */
export class TerminalEvents {
  readonly sink: { readonly ofCommand: ChannelSink }
  readonly #input: boolean
  readonly #emit: EmitEvent
  #error = ''
  #resize = ''
  /** A character may be in two chunks. */
  readonly #decoders = { stdin: decoder(), stdout: decoder(), stderr: decoder(), error: decoder(), resize: decoder() }

  /** @param input whether input is recorded, too */
  constructor(input: boolean, emit: EmitEvent) {
    this.#input = input
    this.#emit = emit
    this.sink = { ofCommand: (channel, bytes) => this.#channel(channel, bytes) }
  }

  get outcome(): string {
    return outcomeOf(this.#error)
  }

  #channel(channel: SessionChannel, bytes: Uint8Array): void {
    if (channel === 'stdin' && !this.#input) return
    const text = this.#decoders[channel].decode(bytes, { stream: true })
    if (text === '') return
    switch (channel) {
      case 'stdout':
      case 'stderr':
        this.#emit('o', text)
        break
      case 'stdin':
        this.#emit('i', text)
        break
      case 'resize':
        this.#resized(text)
        break
      default:
        if (this.#error.length < MAX_ERROR_CHARACTERS) this.#error += text.slice(0, MAX_ERROR_CHARACTERS)
    }
  }

  /** One JSON object after another. */
  #resized(text: string): void {
    for (const piece of text.split(/(?<=\})/)) {
      this.#resize = (this.#resize + piece).slice(-MAX_RESIZE_CHARACTERS)
      if (!piece.endsWith('}')) continue
      const width = sizeOf(WIDTH, this.#resize)
      const height = sizeOf(HEIGHT, this.#resize)
      this.#resize = ''
      if (width > 0 && height > 0) this.#emit('r', `${width}x${height}`)
    }
  }
}

function decoder(): InstanceType<typeof TextDecoder> {
  return new TextDecoder('utf-8', { ignoreBOM: true })
}

// Not by JSON.parse: an exception for each bracket that a client sends would take a thread's time.
const WIDTH = /"Width":\s?(\d{1,5})\b/
const HEIGHT = /"Height":\s?(\d{1,5})\b/

/** 0 = not the size of a terminal. */
function sizeOf(pattern: RegExp, text: string): number {
  const size = Number(pattern.exec(text)?.[1] ?? 0)
  return size <= MOST_COLUMNS ? size : 0
}

/** Characters of a failure's message that are kept. */
const MAX_OUTCOME = 256

/**
 * How a command ended, as a kubelet tells the client in the last message of a session: a metav1.Status in JSON, or text in old versions
 * (apimachinery/pkg/util/remotecommand, k8s.io/cri-streaming/pkg/streaming/remotecommand).
 * @param told everything that came on the channel for errors; '' = nothing, and so nothing is known
 */
function outcomeOf(told: string): string {
  if (told.trim() === '') return ''
  let status: unknown
  try {
    status = JSON.parse(told)
  } catch {
    // An old version, or not all of it.
  }
  if (!isRecord(status)) return `failure: ${told.trim()}`.slice(0, MAX_OUTCOME)
  if (status['status'] === 'Success') return 'success'
  const causes = listOf(recordOf(status['details'])['causes']).map(recordOf)
  const code = causes.find(({ reason }) => reason === 'ExitCode')
  if (code !== undefined) return `exit code ${textOf(code['message'])}`.slice(0, MAX_OUTCOME)
  return `failure: ${textOf(status['message'])}`.slice(0, MAX_OUTCOME)
}

/** What is kept of a kubelet's message, each time. */
const MAX_MESSAGE_BYTES = 4096

/** What a port-forward carries. */
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
