// Records one session: what passes is read as its protocol says, and becomes events of an asciicast.

import type { RecordingReport, SessionEnd } from '../../gateway/api/session-record.ts'
import { headerValue } from '../../gateway/core/request/hop-headers.ts'
import { sessionProtocol } from '../../gateway/core/request/session-request.ts'
import type { SessionTap, TappedSession } from '../../gateway/core/request/session-tap.ts'
import type { Clock } from '../../kit/api/ports.ts'
import type { Charge, HeaderList } from '../../kit/api/stream.ts'
import { type Refusal, refuse } from '../../kit/core/refusal/refusal.ts'
import { MalformedSession, type SessionChannel, type SessionReader } from '../core/protocol/channels.ts'
import { type InflateHeaders, spdyReader } from '../core/protocol/spdy.ts'
import { webSocketReader } from '../core/protocol/websocket.ts'
import { castEvent, castHeader, type RecordedSession } from '../core/recording/asciicast.ts'
import { outcomeOf } from '../core/recording/outcome.ts'
import type { RecordingResult } from '../core/recording/recording-settings.ts'
import type { OpenRecording, Recordings } from '../io/recordings.ts'

export interface RecorderOptions {
  readonly recordings: Pick<Recordings, 'open'>
  readonly inflate: InflateHeaders
  readonly clock: Clock
  /** Name of its file. */
  readonly name: string
  /** Whose session it is. */
  readonly charge: Charge
  readonly about: Omit<RecordedSession, 'protocol'>
  /** The session must not go on without its recording. */
  readonly isRequired: boolean
  /** Whether the gateway is about to end: what waits for the disk is then written before anything else is done. */
  isStopping(): boolean
  /** Once for each session. */
  counted(result: RecordingResult): void
}

/** What is kept of the message with which a kubelet ends a session. */
const MAX_ERROR_CHARACTERS = 4096
/** The size of a terminal: two numbers in JSON. */
const MAX_RESIZE_CHARACTERS = 256
const MOST_COLUMNS = 10_000
const SECOND_MS = 1000

export class SessionRecorder implements SessionTap {
  readonly #options: RecorderOptions
  #session: TappedSession | undefined
  #reader: SessionReader | undefined
  /** undefined = nothing is recorded, or no more. */
  #recording: OpenRecording | undefined
  #name = ''
  #incomplete = ''
  #startMs = 0
  #error = ''
  #resize = ''
  /** A character may be in two chunks. */
  readonly #decoders = { stdin: decoder(), stdout: decoder(), stderr: decoder(), error: decoder(), resize: decoder() }

  constructor(options: RecorderOptions) {
    this.#options = options
  }

  begin(head: HeaderList, session: TappedSession): Refusal | undefined {
    const { recordings, clock, name, charge, about, isRequired, counted } = this.#options
    const protocol = sessionProtocol(head)
    this.#session = session
    this.#reader = this.#readerOf(head)
    this.#startMs = clock.monotonic()
    const header = castHeader({ startMs: clock.now(), session: { ...about, protocol } })
    const events = { onDrained: () => this.#onDrained(), onFailed: (why: string) => this.#cut(why) }
    const opened =
      this.#reader === undefined
        ? `its protocol is not one that is recorded: ${protocol}`
        : recordings.open(name, header, events, charge)
    if (typeof opened !== 'string') {
      this.#recording = opened
      this.#name = name
      return undefined
    }
    this.#incomplete = opened
    if (!isRequired) return undefined
    counted('refused')
    return notRecorded(about.cluster, opened)
  }

  fromClient(chunk: Buffer): boolean {
    return this.#see(chunk, true)
  }

  toClient(chunk: Buffer): boolean {
    return this.#see(chunk, false)
  }

  get isFull(): boolean {
    return this.#options.isRequired && this.#recording?.isFull === true
  }

  end(endedBy: SessionEnd | ''): RecordingReport {
    const outcome = outcomeOf(this.#error)
    this.#close(outcome === '' ? `ended by the ${endedBy}` : `ended: ${outcome}`, this.#options.isStopping())
    this.#options.counted(this.#incomplete === '' ? 'complete' : 'incomplete')
    return { recording: this.#name, incomplete: this.#incomplete, outcome }
  }

  #readerOf(head: HeaderList): SessionReader | undefined {
    const sink = (channel: SessionChannel, bytes: Uint8Array): void => this.#channel(channel, bytes)
    const { inflate } = this.#options
    switch ((headerValue(head, 'upgrade') ?? '').toLowerCase()) {
      case 'websocket':
        if (headerValue(head, 'sec-websocket-extensions') !== undefined) return undefined
        return webSocketReader(headerValue(head, 'sec-websocket-protocol') ?? '', sink)
      case 'spdy/3.1':
        return spdyReader(sink, inflate)
      default:
        return undefined
    }
  }

  #see(chunk: Buffer, isClient: boolean): boolean {
    const reader = this.#reader
    if (reader === undefined || this.#recording === undefined) return !this.#isBroken
    try {
      if (isClient) reader.fromClient(chunk)
      else reader.toClient(chunk)
    } catch (error) {
      if (!(error instanceof MalformedSession)) throw error
      this.#cut(`its stream cannot be read: ${error.message}`)
    }
    if (!this.#options.isRequired && this.#recording?.isOverfull === true) this.#cut('the disk is too slow')
    return !this.#isBroken
  }

  get #isBroken(): boolean {
    return this.#options.isRequired && this.#incomplete !== ''
  }

  #channel(channel: SessionChannel, bytes: Uint8Array): void {
    if (channel === 'stdin' && !this.#options.about.input) return
    const text = this.#decoders[channel].decode(bytes, { stream: true })
    if (text === '') return
    switch (channel) {
      case 'stdout':
      case 'stderr':
        this.#add(castEvent(this.#atSeconds, 'o', text))
        break
      case 'stdin':
        this.#add(castEvent(this.#atSeconds, 'i', text))
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
      if (width > 0 && height > 0) this.#add(castEvent(this.#atSeconds, 'r', `${width}x${height}`))
    }
  }

  get #atSeconds(): number {
    return (this.#options.clock.monotonic() - this.#startMs) / SECOND_MS
  }

  #add(line: string): void {
    const why = this.#recording?.add(line) ?? ''
    if (why !== '') this.#cut(why)
  }

  #onDrained(): void {
    if (this.#options.isRequired && this.#recording?.isFull === false) this.#session?.onReady()
  }

  /** The recording ends here; if it is required, the session too. */
  #cut(why: string): void {
    if (this.#incomplete !== '') return
    this.#incomplete = why
    this.#close(`the recording ends here: ${why}`, false)
    if (this.#options.isRequired) this.#session?.onBroken()
  }

  #close(remark: string, atOnce: boolean): void {
    const recording = this.#recording
    this.#recording = undefined
    recording?.end(castEvent(this.#atSeconds, 'm', remark), atOnce)
  }
}

/** For the client, whose session is not to be without a recording. */
export function notRecorded(cluster: string, why: string): Refusal {
  const message = `sessions of cluster "${cluster}" must be recorded (spec.audit.sessions.whenFull: Block), and this one cannot be: ${why}`
  return refuse('session-not-recorded', message)
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
