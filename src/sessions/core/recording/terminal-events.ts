// What an exec or attach shows, as events of an asciicast.

import type { ChannelSink, SessionChannel } from '../protocol/channels.ts'
import type { EmitEvent } from './asciicast.ts'
import { outcomeOf } from './outcome.ts'

/** What is kept of the message with which a kubelet ends a session. */
const MAX_ERROR_CHARACTERS = 4096
/** The size of a terminal: two numbers in JSON. */
const MAX_RESIZE_CHARACTERS = 256
const MOST_COLUMNS = 10_000

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
