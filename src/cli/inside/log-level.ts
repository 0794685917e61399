// `portcullis log-level`: shows or changes the log level of running gateways, for a while.

import { isRecord, textOf } from '../../api/kube/object-shape.ts'
import { AdminClient, type AdminClientOptions } from '../client/admin-client.ts'
import { type Output, reportUserErrors } from '../command/output.ts'

export interface LogLevelOptions extends AdminClientOptions, Output {
  /** undefined = only shown. */
  readonly level?: string
  /** A duration, `10m`. */
  readonly for: string
}

/** @returns the exit code: 1 when a replica has not answered */
export function logLevel(options: LogLevelOptions): Promise<number> {
  const { level, out, err } = options
  return reportUserErrors(err, async () => {
    const path = '/debug/log-level?replicas=all'
    const client = new AdminClient(options)
    const change = { method: 'PUT', path, body: { level, for: options.for } } as const
    const answer = await client.json(level === undefined ? { path } : change)
    const { replicas, missing } = Object(answer) as { replicas?: unknown; missing?: unknown }
    for (const one of Array.isArray(replicas) ? replicas : []) {
      if (!isRecord(one)) continue
      const until = textOf(one['until'])
      out(
        `${printable(one['replica'])}: ${printable(one['level'])}${until === '' ? '' : ` until ${printable(until)}`}\n`,
      )
    }
    const away: readonly unknown[] = Array.isArray(missing) ? missing : []
    for (const name of away) err(`error: ${printable(name)} has not answered\n`)
    return away.length === 0 ? 0 : 1
  })
}

function printable(value: unknown): string {
  return textOf(value).replace(/[^\x20-\x7e]/g, '?')
}
