// `portcullis login`: a credential for kubectl and other clients, which run it as their exec plugin; run by a user, it says who is logged in.

import { type CommandOutput, reportUserErrors } from '../../cli/command/output.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { parseDuration } from '../../kit/core/text/duration.ts'
import { printable } from '../../kit/core/text/printable.ts'
import { execApiVersion, execCredential } from '../core/exec-credential.ts'
import { type LoginFlags, readLoginSpec } from '../core/login-spec.ts'
import { clientExpiryMs } from '../core/stored-tokens.ts'
import { execInfo } from '../io/exec-info.ts'
import { defaultTokenDir } from '../io/token-files.ts'
import { obtainTokens } from './obtain-tokens.ts'
import type { FLOWS } from './user-login.ts'

export interface LoginOptions extends LoginFlags, CommandOutput {
  readonly flow: (typeof FLOWS)[number]
  readonly browserCommand?: string
  readonly tokenDir?: string
  readonly timeout: string
  readonly force: boolean
  /** `auto`: `exec` if a client has started this command. */
  readonly output: 'auto' | 'exec' | 'text'
  readonly now: () => number
  /** The value of KUBERNETES_EXEC_INFO. Default: that of the environment. */
  readonly execInfo?: string
}

/** How long the user may take, where no flag says so. */
const LOGIN_TIMEOUT_MS = 180_000

/** Resolves with the exit code. */
export function login(options: LoginOptions): Promise<number> {
  const { output, out, err, now } = options
  return reportUserErrors(err, async () => {
    const info = options.execInfo ?? execInfo()
    const apiVersion = execApiVersion(info)
    const asCredential = output === 'exec' || (output === 'auto' && info !== '')
    const spec = readLoginSpec(options)
    const { tokenDir = defaultTokenDir(), browserCommand = '', flow, force } = options
    const signal = AbortSignal.timeout(timeoutOf(options.timeout))
    const tokens = await obtainTokens({ spec, tokenDir, force, flow, browserCommand, signal, err, now })
    if (asCredential) out(execCredential(apiVersion, tokens.idToken, clientExpiryMs(tokens, now())))
    else {
      const until = new Date(tokens.expiresAtMs).toISOString()
      const then = tokens.refreshToken === '' ? 'then the login is needed again' : 'renewed when it is needed'
      out(`logged in at ${spec.issuer} as ${printable(tokens.name)}: the token is valid until ${until}, ${then}\n`)
    }
    return 0
  })
}

/** The ID token of a login that other commands name by their flags. @throws {UserError} */
export async function ownIdToken(flags: LoginFlags, { err, now }: Pick<LoginOptions, 'err' | 'now'>): Promise<string> {
  const spec = readLoginSpec(flags, 'login-')
  const signal = AbortSignal.timeout(LOGIN_TIMEOUT_MS)
  const how = { tokenDir: defaultTokenDir(), force: false, flow: 'auto', browserCommand: '' } as const
  return (await obtainTokens({ spec, ...how, signal, err, now })).idToken
}

function timeoutOf(text: string): number {
  const ms = parseDuration(text)
  if (ms !== undefined && ms > 0 && ms <= 3_600_000) return ms
  throw new UserError(`--timeout ${JSON.stringify(text)} is not a duration up to 1h`, 'such as --timeout 3m')
}
