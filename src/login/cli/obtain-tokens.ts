// The tokens of a login: those in the file while they are valid, else fresh ones by the refresh token, else a login by the user. One command at a time
// asks the provider.

import { UserError } from '../../kit/api/validation/field-errors.ts'
import { printable } from '../../kit/core/text/printable.ts'
import { type LoginSpec, loginKey } from '../core/login-spec.ts'
import { type StoredTokens, usableUntilMs } from '../core/stored-tokens.ts'
import { lockLogin } from '../io/login-lock.ts'
import { type Provider, withProvider } from '../io/provider.ts'
import { ProviderAway } from '../io/provider-errors.ts'
import { prepareTokenDir, readTokens, tokenFile, writeTokens } from '../io/token-files.ts'
import { type AskUser, logInByUser } from './user-login.ts'

export interface ObtainOptions extends AskUser {
  readonly spec: LoginSpec
  readonly tokenDir: string
  /** Log in even if there are tokens. */
  readonly force: boolean
  readonly now: () => number
}

/** @throws {UserError} */
export async function obtainTokens(options: ObtainOptions): Promise<StoredTokens> {
  const { spec, tokenDir, force, err, signal } = options
  prepareTokenDir(tokenDir)
  const file = tokenFile(tokenDir, loginKey(spec))
  const before = readTokens(file).tokens
  if (!force && isUsable(before, options)) return before
  const lock = await lockLogin(file, signal, () => err('waiting for another login of this user\n'))
  try {
    const { tokens, damaged } = readTokens(file)
    if (damaged) err(`warning: ${file} does not hold tokens of this program; it is overwritten\n`)
    // While this command waited, another one has logged in.
    const isNew = lock.waited && tokens?.idToken !== before?.idToken
    if ((!force || isNew) && isUsable(tokens, options)) return tokens
    const fresh = await renewAt(tokens, lock.waited, options)
    if (fresh !== tokens) writeTokens(file, fresh)
    return fresh
  } finally {
    lock.release()
  }
}

function isUsable(tokens: StoredTokens | undefined, { now }: ObtainOptions): tokens is StoredTokens {
  return tokens !== undefined && usableUntilMs(tokens) > now()
}

/** A token that is still valid for a moment stays in use while its provider is away. */
async function renewAt(
  tokens: StoredTokens | undefined,
  waited: boolean,
  options: ObtainOptions,
): Promise<StoredTokens> {
  const { spec, now, force, err } = options
  try {
    return await withProvider(spec, now, (provider) => renew(provider, tokens, waited, options))
  } catch (error) {
    if (!(error instanceof ProviderAway) || force || tokens === undefined || tokens.expiresAtMs <= now()) throw error
    err(`warning: ${error.message}; the token is not renewed yet\n`)
    return tokens
  }
}

async function renew(
  provider: Provider,
  tokens: StoredTokens | undefined,
  waited: boolean,
  options: ObtainOptions,
): Promise<StoredTokens> {
  const { force, err, spec } = options
  if (!force && tokens !== undefined && tokens.refreshToken !== '') {
    const fresh = await provider.refresh(tokens)
    if (fresh !== undefined) return fresh
    err(`the login of ${printable(tokens.name)} at ${spec.issuer} has ended: the provider does not refresh it\n`)
  }
  // The user has refused, or closed, the login of that command; another page would come for each command that waits.
  if (waited && !force) {
    throw new UserError('the login that this command waited for did not succeed', 'run the command again')
  }
  return logInByUser(provider, options)
}
