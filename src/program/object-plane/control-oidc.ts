// The embedded API server's OpenID provider, from its settings: keys, tokens, and counts of both.

import { readFileSync } from 'node:fs'
import { CONTROL_OIDC_FETCHES, CONTROL_OIDC_KEYS_TIME, CONTROL_OIDC_TOKENS } from '../../gateway/metrics/descriptors.ts'
import type { Exposition } from '../../gateway/metrics/exposition.ts'
import type { Logger } from '../../kit/api/ports.ts'
import { errorMessage } from '../../kit/api/validation/error-message.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { systemClock } from '../../kit/io/world/clock.ts'
import type { IssuerRules } from '../../pki/core/id-tokens/issuer-rules.ts'
import { certificateTimes } from '../../pki/io/certificate-validity.ts'
import { createIdTokens, type IdTokens } from '../../pki/io/id-tokens/id-tokens.ts'
import { IssuerKeys } from '../../pki/io/id-tokens/issuer-keys.ts'
import type { ControlOidcConfig } from '../../process/config/control-oidc.ts'

export interface ControlOidc {
  readonly tokens: IdTokens
  readonly keys: IssuerKeys
  exposeMetrics(into: Exposition): void
}

/** undefined = no provider. @throws {UserError} if its CA file is unusable */
export function createControlOidc(config: ControlOidcConfig, log: Logger): ControlOidc | undefined {
  const { controlOidcIssuerUrl: issuer, controlOidcCaFile: caFile, controlOidcSigningAlgs: algs } = config
  if (issuer === '') return undefined
  checkOidcCaFile(config)
  const tokensBy = new Map<string, number>()
  const counts = { tokens: tokensBy, fetched: 0, notFetched: 0, fetchedAtMs: 0 } satisfies OidcCounts
  const keys = new IssuerKeys({
    issuer,
    ca: () => (caFile === '' ? undefined : readFileSync(caFile)),
    log,
    monotonic: () => systemClock.monotonic(),
    onFetched(succeeded) {
      if (succeeded) counts.fetched++
      else counts.notFetched++
      if (succeeded) counts.fetchedAtMs = systemClock.now()
    },
  })
  const tokens = createIdTokens({
    rules: controlOidcRules(config),
    algs,
    keys,
    log,
    onToken: (result) => void tokensBy.set(result, (tokensBy.get(result) ?? 0) + 1),
  })
  return { tokens, keys, exposeMetrics: (into) => exposeOidc(into, counts) }
}

/** As kube-apiserver makes an AuthenticationConfiguration of its --oidc-* flags. */
export function controlOidcRules(config: ControlOidcConfig): IssuerRules {
  const { controlOidcGroupsClaim: groups } = config
  return {
    issuer: config.controlOidcIssuerUrl,
    audiences: [config.controlOidcClientId],
    username: { claim: config.controlOidcUsernameClaim, prefix: usernamePrefix(config) },
    groups: groups === '' ? undefined : { claim: groups, prefix: config.controlOidcGroupsPrefix },
    uidClaim: '',
    requiredClaims: requiredClaims(config.controlOidcRequiredClaims),
  }
}

function usernamePrefix(config: ControlOidcConfig): string {
  const { controlOidcUsernamePrefix: prefix, controlOidcUsernameClaim: claim, controlOidcIssuerUrl: issuer } = config
  if (prefix === '-') return ''
  if (prefix !== '') return prefix
  return claim === 'email' ? '' : `${issuer}#`
}

/** Each `CLAIM=VALUE`; the value may contain `=`. */
function requiredClaims(texts: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    texts.map((text) => {
      const at = text.indexOf('=')
      return [text.slice(0, at), text.slice(at + 1)]
    }),
  )
}

/** @throws {UserError} */
export function checkOidcCaFile({ controlOidcCaFile: file }: ControlOidcConfig): void {
  if (file === '') return
  const fix = 'name a PEM file with the CAs of the OpenID provider'
  let pem: string
  try {
    pem = readFileSync(file, 'utf8')
  } catch (error) {
    throw new UserError(`cannot read --control-oidc-ca-file ${file}: ${errorMessage(error)}`, fix)
  }
  if (certificateTimes(pem).length === 0) throw new UserError(`--control-oidc-ca-file ${file} has no certificate`, fix)
}

interface OidcCounts {
  /** Tokens by result: `accepted`, or the reason for refusal. */
  readonly tokens: ReadonlyMap<string, number>
  readonly fetched: number
  readonly notFetched: number
  /** When its keys were last read, milliseconds since the epoch; 0 = never. */
  readonly fetchedAtMs: number
}

function exposeOidc(into: Exposition, { tokens, fetched, notFetched, fetchedAtMs }: OidcCounts): void {
  for (const [result, count] of tokens) into.addMetric(CONTROL_OIDC_TOKENS, count, result)
  into.addMetric(CONTROL_OIDC_FETCHES, fetched, 'success')
  into.addMetric(CONTROL_OIDC_FETCHES, notFetched, 'error')
  into.addMetric(CONTROL_OIDC_KEYS_TIME, fetchedAtMs / 1000)
}
