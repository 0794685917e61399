// `portcullis play`: opens a recording and plays it, as far as it is whole.

import { type CommandOutput, reportUserErrors, type Terminal } from '../../cli/command/output.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { parseDuration } from '../../kit/core/text/duration.ts'
import { printable } from '../../kit/core/text/printable.ts'
import { type CastEvent, parseCastEvent, parseCastHeader } from '../core/recording/asciicast.ts'
import { TERMINAL_RESET, terminalFilter } from '../core/recording/terminal-filter.ts'
import { type OpenedRecording, openRecording } from '../io/read-recording.ts'
import type { RecordingEnd } from '../io/sealed-recording.ts'

interface PlayOptions extends CommandOutput {
  readonly file: string
  readonly keyFile: string
  readonly speed: string
  readonly idleLimit: string
  readonly text: boolean
  readonly cast: boolean
  readonly terminal: Pick<Terminal, 'columns' | 'interrupted'>
}

const SECOND_MS = 1000
const LEAST_SPEED = 0.01
const MOST_SPEED = 1000
/** What ends, and how, on the exit code: a recording that is not whole proves nothing about its end. */
const ENDS: Readonly<Record<RecordingEnd, string>> = {
  complete: '',
  cut: 'the recording breaks off here: the gateway was killed, the session goes on, or the file was cut',
  damaged: 'the recording is damaged from here on, or was made with another key',
}

/** Resolves with the exit code: 0 only if the recording is whole. */
export function playCommand(options: PlayOptions): Promise<number> {
  return reportUserErrors(options.err, () => play(options))
}

async function play({ file, keyFile, speed, idleLimit, text, cast, out, err, terminal }: PlayOptions): Promise<number> {
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
  if (text && cast) throw new UserError('--text and --cast are given', 'give one of them')
  if (cast && terminal.columns() !== undefined) {
    throw new UserError('--cast prints control sequences as they were recorded', 'send its output to a file')
  }
  const source = openRecording(file, keyFile)
  try {
    if (cast) for (const line of source.lines()) out(`${line}\n`)
    else if (text) printText(source, out, err)
    else await playLive(source, factor, longestMs, out, err, terminal.interrupted())
  } finally {
    source.close()
  }
  const problem = ENDS[source.end]
  if (problem !== '') err(`${problem}\n`)
  return problem === '' ? 0 : 1
}

function* eventsOf(source: OpenedRecording, err: CommandOutput['err']): Generator<CastEvent> {
  let isFirst = true
  for (const line of source.lines()) {
    if (!isFirst) {
      const event = parseCastEvent(line)
      if (event !== undefined) yield event
      continue
    }
    isFirst = false
    err(about(line))
  }
}

/** Whose session it is; all of it was chosen by someone else. */
function about(line: string): string {
  const header = parseCastHeader(line)
  if (header === undefined) return 'a recording of an unknown form\n'
  const texts = ['user', 'cluster', 'namespace', 'pod', 'container', 'kind', 'auditId'] as const
  const shown = texts.map((name) => (header[name] === '' ? '' : `${name} ${printable(String(header[name] ?? ''))}`))
  const command = Array.isArray(header['command']) ? header['command'].map(String) : []
  const time = new Date(header.startMs).toISOString()
  const fields = [time, ...shown, ...(command.length === 0 ? [] : [`command ${printable(JSON.stringify(command))}`])]
  return `${fields.filter((one) => one !== '').join(', ')}\n`
}

function printText(source: OpenedRecording, out: CommandOutput['out'], err: CommandOutput['err']): void {
  const filter = terminalFilter(true)
  let last = '\n'
  for (const { code, data } of eventsOf(source, err)) {
    const shown = code === 'o' ? filter.filter(data) : ''
    if (shown !== '') {
      out(shown)
      last = shown
    }
    if (code === 'm') {
      if (!last.endsWith('\n')) out('\n')
      last = '\n'
      err(`${printable(data)}\n`)
    }
  }
}

async function playLive(
  source: OpenedRecording,
  factor: number,
  longestMs: number,
  out: CommandOutput['out'],
  err: CommandOutput['err'],
  interrupted: AbortSignal,
): Promise<void> {
  const filter = terminalFilter(false)
  let beforeSeconds = 0
  let remark = ''
  try {
    for (const { atSeconds, code, data } of eventsOf(source, err)) {
      if (interrupted.aborted) break
      const pauseMs = Math.min(longestMs, ((atSeconds - beforeSeconds) * SECOND_MS) / factor)
      beforeSeconds = atSeconds
      if (pauseMs >= 1) await pause(pauseMs, interrupted)
      if (code === 'o') out(filter.filter(data))
      else if (code === 'm') remark = data
    }
  } finally {
    out(TERMINAL_RESET)
  }
  if (remark !== '') err(`\n${printable(remark)}\n`)
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
