// `portcullis support-bundle`: collects what remote support needs to know about a running gateway, in one file without secrets.

import { UserError } from '../../kit/api/validation/field-errors.ts'
import { writeNewFile } from '../../kit/io/world/new-file.ts'
import { AdminClient, type AdminClientOptions } from '../client/admin-client.ts'
import { type CommandOutput, reportUserErrors } from '../command/output.ts'

export interface SupportBundleOptions extends AdminClientOptions, CommandOutput {
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
