// `portcullis log-level`: shows the log level of running gateways, or changes it temporarily.

import { isRecord, textOf } from '../../kit/api/json/object-shape.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { parseDuration } from '../../kit/core/text/duration.ts'
import { printable } from '../../kit/core/text/printable.ts'
import { AdminClient, type AdminClientOptions } from '../client/admin-client.ts'
import { type CommandOutput, reportUserErrors } from '../command/output.ts'

export interface LogLevelOptions extends AdminClientOptions, CommandOutput {
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
