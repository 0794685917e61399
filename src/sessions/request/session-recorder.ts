// Records one session: what passes is read as its protocol says, and becomes events of an asciicast.

import type { RecordingReport, SessionEnd } from '../../gateway/api/session-record.ts'
import { sessionProtocol } from '../../gateway/core/request/session-request.ts'
import type { SessionTap, TappedSession } from '../../gateway/core/request/session-tap.ts'
import type { Clock } from '../../kit/api/ports.ts'
import type { Charge, HeaderList } from '../../kit/api/stream.ts'
import { type Refusal, refuse } from '../../kit/core/refusal/refusal.ts'
import { MalformedSession, type SessionReader } from '../core/protocol/channels.ts'
import { readerFor } from '../core/protocol/session-reader.ts'
import type { InflateHeaders } from '../core/protocol/spdy.ts'
import { type CastCode, castEvent, castHeader, type RecordedSession } from '../core/recording/asciicast.ts'
import type { RecordingResult } from '../core/recording/recording-settings.ts'
import { ForwardEvents, TerminalEvents } from '../core/recording/session-events.ts'
import type { OpenRecording, Recordings } from '../io/recordings.ts'

export interface RecorderOptions {
  readonly recordings: Pick<Recordings, 'open'>
  /** For one session. */
  inflater(): InflateHeaders
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
  readonly #events: TerminalEvents | ForwardEvents

  constructor(options: RecorderOptions) {
    this.#options = options
    const { kind, input } = options.about
    const emit = (code: CastCode, data: string): void => this.#add(castEvent(this.#atSeconds, code, data))
    this.#events = kind === 'portforward' ? new ForwardEvents(input, emit) : new TerminalEvents(input, emit)
  }

  begin(head: HeaderList, session: TappedSession): Refusal | undefined {
    const { recordings, inflater, clock, name, charge, about, isRequired, counted } = this.#options
    const protocol = sessionProtocol(head)
    this.#session = session
    this.#reader = readerFor(head, this.#events.sink, about.ports ?? [], inflater)
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
    const { outcome } = this.#events
    this.#close(outcome === '' ? `ended by the ${endedBy}` : `ended: ${outcome}`, this.#options.isStopping())
    this.#options.counted(this.#incomplete === '' ? 'complete' : 'incomplete')
    return { recording: this.#name, incomplete: this.#incomplete, outcome }
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
  const message = `sessions of cluster "${cluster}" must be recorded (spec.audit.sessions.whenFull: Block), and this one cannot: ${why}`
  return refuse('session-not-recorded', message)
}
