// OpenID Connect settings of the embedded API server: names, defaults and meaning are those of kube-apiserver's --oidc-* flags, with the prefix
// `--control`.

import { SIGNING_ALGS, type SigningAlg } from '../../pki/core/signing-algs.ts'
import type { SourceKind } from './objects.ts'
import { addProblem, isWrong, namesOf } from './setting-problems.ts'
import { file, list, type Setting, settings, text, type ValuesOf, withDefault } from './setting-rows.ts'
import { type Parsed, parseTexts, someOf } from './setting-values.ts'
import type { SettingsReader } from './settings-reader.ts'

export const CONTROL_OIDC = settings({
  /** '' = no tokens from an OpenID provider. */
  controlOidcIssuerUrl: text(
    '<url>',
    '',
    'https URL of the OpenID provider whose ID tokens the embedded API server accepts; default: none',
    { parse: parseIssuer },
  ),
  controlOidcClientId: text(
    '<id>',
    '',
    'client that the ID tokens must be issued for, in their aud claim; required with an issuer',
  ),
  controlOidcUsernameClaim: text('<claim>', 'sub', 'claim that holds the name of the user'),
  /** '' = the issuer and `#`, unless the claim is `email`; `-` = none. */
  controlOidcUsernamePrefix: text(
    '<prefix>',
    '',
    'prefix of user names; - means none; default: the issuer and #, or none with the claim email',
  ),
  controlOidcGroupsClaim: text(
    '<claim>',
    '',
    'claim that holds the groups of the user, a string or a list; default: no groups',
  ),
  controlOidcGroupsPrefix: text('<prefix>', '', 'prefix of group names'),
  controlOidcRequiredClaims: list(
    '<claim=value>',
    '',
    parseRequiredClaims,
    'claim that ID tokens must have with this value; may be repeated',
    { setting: 'controlOidcRequiredClaim' },
  ),
  controlOidcCaFile: file(
    'PEM file of the CAs that verify the OpenID provider, read at each use; default: those of the machine',
  ),
  controlOidcSigningAlgs: withDefault(
    '<algs>',
    'RS256',
    parseAlgs,
    [],
    `algorithms that ID tokens may be signed with: some of ${SIGNING_ALGS.join(', ')}`,
  ),
})

export type ControlOidcConfig = ValuesOf<typeof CONTROL_OIDC>

/** Errors in combinations of settings. */
export function checkControlOidc(config: ControlOidcConfig, source: SourceKind, reader: SettingsReader): void {
  const table = CONTROL_OIDC
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
