// The settings of OpenID Connect for the embedded API server: names, defaults and meaning of kube-apiserver's --oidc-* flags, with
// `--control` in front.

import { SIGNING_ALGS, type SigningAlg } from '../../io/oidc/signing-keys.ts'
import type { SourceKind } from './objects.ts'
import { addProblem, isWrong, namesOf } from './setting-problems.ts'
import { type Parsed, parseText, parseTexts, someOf } from './setting-values.ts'
import { type Setting, type SettingsReader, setting } from './settings-reader.ts'

export interface ControlOidcConfig {
  /** '' = no tokens of an OpenID provider. */
  readonly controlOidcIssuerUrl: string
  readonly controlOidcClientId: string
  readonly controlOidcUsernameClaim: string
  /** '' = the issuer and `#`, unless the claim is `email`; `-` = none. */
  readonly controlOidcUsernamePrefix: string
  readonly controlOidcGroupsClaim: string
  readonly controlOidcGroupsPrefix: string
  readonly controlOidcRequiredClaims: readonly string[]
  readonly controlOidcCaFile: string
  readonly controlOidcSigningAlgs: readonly SigningAlg[]
}

/** Rows of the table of settings, in the order of help. */
export const CONTROL_OIDC_TABLE: {
  readonly [Name in keyof ControlOidcConfig]: Setting<ControlOidcConfig[Name]>
} = {
  controlOidcIssuerUrl: setting(
    'controlOidcIssuerUrl',
    '<url>',
    '',
    parseIssuer,
    'https URL of the OpenID provider whose ID tokens the embedded API server accepts; default: none',
  ),
  controlOidcClientId: setting(
    'controlOidcClientId',
    '<id>',
    '',
    parseText,
    'client that the ID tokens must be issued for, in their aud claim; required with an issuer',
  ),
  controlOidcUsernameClaim: setting(
    'controlOidcUsernameClaim',
    '<claim>',
    'sub',
    parseText,
    'claim that is the name of the user',
  ),
  controlOidcUsernamePrefix: setting(
    'controlOidcUsernamePrefix',
    '<prefix>',
    '',
    parseText,
    'in front of user names; - is none; default: the issuer and #, none for the claim email',
  ),
  controlOidcGroupsClaim: setting(
    'controlOidcGroupsClaim',
    '<claim>',
    '',
    parseText,
    'claim with the groups of the user, a text or a list; default: no groups',
  ),
  controlOidcGroupsPrefix: setting('controlOidcGroupsPrefix', '<prefix>', '', parseText, 'in front of names of groups'),
  controlOidcRequiredClaims: setting(
    'controlOidcRequiredClaim',
    '<claim=value>',
    '',
    parseRequiredClaims,
    'claim that ID tokens must have with this value; may be repeated',
    true,
  ),
  controlOidcCaFile: setting(
    'controlOidcCaFile',
    '<file>',
    '',
    parseText,
    'PEM file of the CAs that verify the OpenID provider, read at each use; default: those of the machine',
  ),
  controlOidcSigningAlgs: setting<readonly SigningAlg[]>(
    'controlOidcSigningAlgs',
    '<algs>',
    'RS256',
    parseAlgs,
    `algorithms that ID tokens may be signed with: some of ${SIGNING_ALGS.join(', ')}`,
  ),
}

export function readControlOidc(reader: SettingsReader): ControlOidcConfig {
  const table = CONTROL_OIDC_TABLE
  return {
    controlOidcIssuerUrl: reader.take(table.controlOidcIssuerUrl, ''),
    controlOidcClientId: reader.take(table.controlOidcClientId, ''),
    controlOidcUsernameClaim: reader.take(table.controlOidcUsernameClaim, ''),
    controlOidcUsernamePrefix: reader.take(table.controlOidcUsernamePrefix, ''),
    controlOidcGroupsClaim: reader.take(table.controlOidcGroupsClaim, ''),
    controlOidcGroupsPrefix: reader.take(table.controlOidcGroupsPrefix, ''),
    controlOidcRequiredClaims: reader.take(table.controlOidcRequiredClaims, []),
    controlOidcCaFile: reader.take(table.controlOidcCaFile, ''),
    controlOidcSigningAlgs: reader.take(table.controlOidcSigningAlgs, []),
  }
}

/** Errors in combinations of settings. */
export function checkControlOidc(config: ControlOidcConfig, source: SourceKind, reader: SettingsReader): void {
  const table = CONTROL_OIDC_TABLE
  const issuer = table.controlOidcIssuerUrl
  if (isWrong(reader, issuer)) return
  if (config.controlOidcIssuerUrl !== '') {
    if (source !== 'embedded') {
      addProblem(reader, issuer, `has no meaning with --source ${source}`, 'remove it, or write --source embedded')
    }
    if (config.controlOidcClientId === '' && !isWrong(reader, table.controlOidcClientId)) {
      const client = table.controlOidcClientId
      addProblem(reader, client, 'no client is given for the issuer', `give ${namesOf(client)}`)
    }
    return
  }
  const { controlOidcClientId, controlOidcUsernamePrefix, controlOidcGroupsClaim, controlOidcGroupsPrefix } = config
  const given: readonly (readonly [Setting, string | readonly string[]])[] = [
    [table.controlOidcClientId, controlOidcClientId],
    [table.controlOidcUsernameClaim, unlessDefault(table.controlOidcUsernameClaim, config.controlOidcUsernameClaim)],
    [table.controlOidcUsernamePrefix, controlOidcUsernamePrefix],
    [table.controlOidcGroupsClaim, controlOidcGroupsClaim],
    [table.controlOidcGroupsPrefix, controlOidcGroupsPrefix],
    [table.controlOidcRequiredClaims, config.controlOidcRequiredClaims],
    [table.controlOidcCaFile, config.controlOidcCaFile],
    [
      table.controlOidcSigningAlgs,
      unlessDefault(table.controlOidcSigningAlgs, config.controlOidcSigningAlgs.join(',')),
    ],
  ]
  for (const [row, value] of given) {
    if (value.length > 0) addProblem(reader, row, `is given without ${issuer.flag}`, `give ${namesOf(issuer)} too`)
  }
}

function unlessDefault(row: Setting, value: string): string {
  return value === row.defaultText ? '' : value
}

function parseIssuer(raw: unknown): Parsed<string> {
  const text = String(raw)
  const fix = 'write the issuer as its tokens have it, for example https://login.example.com/realms/ops'
  if (!URL.canParse(text) || !text.startsWith('https://')) return { message: 'is not an https URL', fix }
  const { search, hash, username, password } = new URL(text)
  if (search !== '' || hash !== '' || text.includes('?') || text.includes('#') || username !== '' || password !== '') {
    return { message: 'has a query, a fragment or a user', fix }
  }
  return { value: text }
}

function parseRequiredClaims(raw: unknown): Parsed<readonly string[]> {
  const parsed = parseTexts(raw)
  const fix = 'write CLAIM=VALUE, for example hd=example.com'
  if (!('value' in parsed)) return { message: parsed.message, fix }
  const names = parsed.value.map((text) => text.slice(0, text.indexOf('=')))
  if (parsed.value.some((text) => text.indexOf('=') < 1)) return { message: 'is not a claim and its value', fix }
  if (new Set(names).size < names.length) return { message: 'names a claim twice', fix }
  return parsed
}

function parseAlgs(raw: unknown): Parsed<readonly SigningAlg[]> {
  const parsed = someOf(SIGNING_ALGS)(raw)
  if (!('value' in parsed)) return parsed
  return { value: SIGNING_ALGS.filter((alg) => parsed.value.includes(alg)) }
}
