// `portcullis play`: opens a recording and plays it, as far as it is whole.

import { type CommandOutput, reportUserErrors, type Terminal } from '../../cli/command/output.ts'
import { listOf } from '../../kit/api/json/object-shape.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { parseDuration } from '../../kit/core/text/duration.ts'
import { printable } from '../../kit/core/text/printable.ts'
import {
  type CastEvent,
  type CastHeaderFields,
  ONE_BYTE_PER_CODE_POINT,
  parseCastEvent,
  parseCastHeader,
} from '../core/recording/asciicast.ts'
import { ForwardBytes, ForwardText } from '../core/recording/forward-text.ts'
import { TERMINAL_RESET, terminalFilter } from '../core/recording/terminal-filter.ts'
import { type OpenedRecording, openRecording, type RecordingEnd } from '../io/sealed-recording.ts'

interface PlayOptions extends CommandOutput {
  readonly file: string
  readonly keyFile: string
  readonly speed: string
  readonly idleLimit: string
  readonly text: boolean
  readonly cast: boolean
  /** The connection of a port-forward whose bytes are written. */
  readonly connection?: string | undefined
  /** Those that the client sent. */
  readonly sent?: boolean | undefined
  readonly outBytes: (bytes: Uint8Array) => void
  readonly terminal: Pick<Terminal, 'columns' | 'interrupted'>
}

const SECOND_MS = 1000
const LEAST_SPEED = 0.01
const MOST_SPEED = 1000
/** What ends, and how, on the exit code: a recording that is not whole proves nothing about its end. */
const ENDS: Readonly<Record<RecordingEnd, string>> = {
  complete: '',
  cut: 'the recording ends here: the gateway was killed, the session is still running, or the file was truncated',
  damaged: 'the recording is damaged from here on, or was made with another key',
}

/** Resolves with the exit code: 0 only if the recording is whole. */
export function playCommand(options: PlayOptions): Promise<number> {
  return reportUserErrors(options.err, () => play(options))
}

async function play(options: PlayOptions): Promise<number> {
  const { file, keyFile, text, cast, connection, out, err, terminal } = options
  const pace = paceOf(options)
  checkForms(options)
  const source = openRecording(file, keyFile)
  try {
    if (cast) for (const line of source.lines()) out(`${line}\n`)
    else if (connection !== undefined) printBytes(openCast(source, err), connection, options)
    else if (text) printText(openCast(source, err), out, err)
    else await playLive(openCast(source, err), pace, out, err, terminal.interrupted())
  } finally {
    source.close()
  }
  const problem = ENDS[source.end]
  if (problem !== '') err(`${problem}\n`)
  return problem === '' ? 0 : 1
}

interface Pace {
  readonly factor: number
  readonly longestMs: number
}

function paceOf({ speed, idleLimit }: PlayOptions): Pace {
  const factor = Number(speed)
  if (!(factor >= LEAST_SPEED && factor <= MOST_SPEED)) {
    throw new UserError(
      `--speed ${printable(speed)} is not a factor`,
      `write a number from ${LEAST_SPEED} to ${MOST_SPEED}`,
    )
  }
  const longestMs = parseDuration(idleLimit)
  if (longestMs === undefined) {
    throw new UserError(`--idle-limit ${printable(idleLimit)} is not a duration`, 'write 2s, or 500ms')
  }
  return { factor, longestMs }
}

function checkForms({ text, cast, connection, sent, terminal }: PlayOptions): void {
  if (text && cast) throw new UserError('--text and --cast are given', 'give one of them')
  if (connection !== undefined && (text || cast)) {
    throw new UserError('--connection is given with --text or --cast', 'give one of them')
  }
  if (sent === true && connection === undefined) {
    throw new UserError('--sent is given without --connection', 'say which connection: --connection 1')
  }
  if (terminal.columns() === undefined) return
  if (cast) throw new UserError('--cast prints control sequences as they were recorded', 'send its output to a file')
  if (connection !== undefined) {
    throw new UserError('--connection prints bytes as they were recorded', 'send its output to a file')
  }
}

interface OpenedCast {
  /** Its bytes are those of connections. */
  readonly isForward: boolean
  readonly events: Iterable<CastEvent>
}

/** Says whose session it is. */
function openCast(source: OpenedRecording, err: CommandOutput['err']): OpenedCast {
  const lines = source.lines()
  const first = lines.next()
  if (first.done === true) return { isForward: false, events: [] }
  const header = parseCastHeader(first.value)
  err(header === undefined ? 'a recording of an unknown form\n' : about(header))
  return { isForward: header?.['dataEncoding'] === ONE_BYTE_PER_CODE_POINT, events: eventsOf(lines) }
}

function* eventsOf(lines: Iterable<string>): Generator<CastEvent> {
  for (const line of lines) {
    const event = parseCastEvent(line)
    if (event !== undefined) yield event
  }
}

/** Whose session it is; all of it was chosen by someone else. */
function about(header: CastHeaderFields): string {
  const texts = ['user', 'cluster', 'namespace', 'pod', 'container', 'kind', 'auditId'] as const
  const shown = texts.map((name) => (header[name] === '' ? '' : `${name} ${printable(String(header[name] ?? ''))}`))
  const [command = [], ports = []] = ['command', 'ports'].map((name) => listOf(header[name]).map(String))
  const time = new Date(header.startMs).toISOString()
  const listed = [
    command.length === 0 ? '' : `command ${printable(JSON.stringify(command))}`,
    ports.length === 0 ? '' : `ports ${printable(ports.join(','))}`,
  ]
  return `${[time, ...shown, ...listed].filter((one) => one !== '').join(', ')}\n`
}

function printText({ isForward, events }: OpenedCast, out: CommandOutput['out'], err: CommandOutput['err']): void {
  const show = isForward ? forwardShow() : terminalShow(true)
  let last = '\n'
  for (const event of events) {
    const shown = show(event)
    if (shown === undefined) {
      if (!last.endsWith('\n')) out('\n')
      last = '\n'
      err(`${printable(event.data)}\n`)
    } else if (shown !== '') {
      out(shown)
      last = shown
    }
  }
}

async function playLive(
  { isForward, events }: OpenedCast,
  { factor, longestMs }: Pace,
  out: CommandOutput['out'],
  err: CommandOutput['err'],
  interrupted: AbortSignal,
): Promise<void> {
  const show = isForward ? forwardShow() : terminalShow(false)
  let beforeSeconds = 0
  let remark = ''
  try {
    for (const event of events) {
      if (interrupted.aborted) break
      const pauseMs = Math.min(longestMs, ((event.atSeconds - beforeSeconds) * SECOND_MS) / factor)
      beforeSeconds = event.atSeconds
      if (pauseMs >= 1) await pause(pauseMs, interrupted)
      const shown = show(event)
      if (shown === undefined) remark = event.data
      else out(shown)
    }
  } finally {
    if (!isForward) out(TERMINAL_RESET)
  }
  if (remark !== '') err(`\n${printable(remark)}\n`)
}

/** What is printed of an event; undefined = it is a remark. */
type Show = (event: CastEvent) => string | undefined

function terminalShow(isPlain: boolean): Show {
  const filter = terminalFilter(isPlain)
  return ({ code, data }) => (code === 'm' ? undefined : code === 'o' ? filter.filter(data) : '')
}

function forwardShow(): Show {
  const text = new ForwardText()
  return (event) => text.show(event)
}

function printBytes({ isForward, events }: OpenedCast, connection: string, { sent, outBytes }: PlayOptions): void {
  if (!isForward) throw new UserError('this is not a port-forward: it has no connections', 'leave --connection out')
  const wanted = new ForwardBytes(Number(connection), sent === true ? 'i' : 'o')
  for (const event of events) {
    const bytes = wanted.take(event)
    if (bytes !== undefined) outBytes(bytes)
  }
  if (wanted.isFound) return
  throw new UserError(`there is no connection ${printable(connection)}`, '--text shows the connections there are')
}

function pause(ms: number, interrupted: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer)
      interrupted.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    interrupted.addEventListener('abort', end)
  })
}
