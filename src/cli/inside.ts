// Commands that look inside running gateways. `portcullis log-level` shows the log level, or changes it for a while.

import { isRecord, textOf } from '../kit/api/json/object-shape.ts'
import { UserError } from '../kit/api/validation/field-errors.ts'
import { parseDuration } from '../kit/core/text/duration.ts'
import { printable } from '../kit/core/text/printable.ts'
import { AdminClient, type AdminClientOptions } from './client/admin-client.ts'
import { type CommandOutput, reportUserErrors } from './command/output.ts'
import { writeNewFile } from './io/local-files.ts'

interface LogLevelOptions extends AdminClientOptions, CommandOutput {
  /** undefined = only show it. */
  readonly level?: string
  /** A duration, `10m`. */
  readonly for: string
}

/** @returns the exit code: 1 if a replica didn't answer */
export function logLevel(options: LogLevelOptions): Promise<number> {
  const { level, out, err } = options
  return reportUserErrors(err, async () => {
    const path = '/debug/log-level?replicas=all'
    if (parseDuration(options.for) === undefined)
      throw new UserError(`--for ${JSON.stringify(options.for)} is not a duration`, 'write 10m')
    const client = new AdminClient(options)
    const change = { method: 'PUT', path, body: { level, for: options.for } } as const
    const answer = await client.json(level === undefined ? { path } : change)
    const { replicas, missing } = Object(answer) as { replicas?: unknown; missing?: unknown }
    for (const one of Array.isArray(replicas) ? replicas : []) {
      if (!isRecord(one)) continue
      const until = textOf(one['until'])
      const level = `${textOf(one['replica'])}: ${textOf(one['level'])}`
      out(`${printable(until === '' ? level : `${level} until ${until}`)}\n`)
    }
    const away: readonly unknown[] = Array.isArray(missing) ? missing : []
    for (const name of away) err(`error: ${printable(textOf(name))} has not answered\n`)
    return away.length === 0 ? 0 : 1
  })
}

// `portcullis support-bundle`: collects what remote support needs to know about a running gateway, in one file without secrets.

interface SupportBundleOptions extends AdminClientOptions, CommandOutput {
  /** Must not exist. */
  readonly file: string
  /** Seconds of a CPU profile; 0 = none. */
  readonly profile: number
}

const ANSWER_MS = 30_000

/** @returns the exit code */
export function supportBundle(options: SupportBundleOptions): Promise<number> {
  const { file, profile, out, err } = options
  return reportUserErrors(err, async () => {
    if (profile > 60) throw new UserError(`--profile ${profile} is too long`, 'write 0 to 60')
    const client = new AdminClient(options)
    const path = `/debug/support-bundle?profile=${profile}`
    const { body } = await client.send({ path, timeoutMs: ANSWER_MS + profile * 1000 })
    writeNewFile(file, body)
    out(`${file}: version, settings, state, metrics and log of ${client.url.origin}, without secrets\n`)
    return 0
  })
}
