// The settings of the admin listener where other machines reach it: TLS and login.

import { isLoopback, type ListenAddress } from '../../core/cluster/listen-address.ts'
import { addProblem, namesOf } from './setting-problems.ts'
import { parseText } from './setting-values.ts'
import { type Setting, type SettingsReader, setting } from './settings-reader.ts'

export interface AdminConfig {
  /** Both '' (no TLS) or both set. */
  readonly adminTlsCertFile: string
  readonly adminTlsPrivateKeyFile: string
  /** '' = none. */
  readonly adminTokenFile: string
}

/** Rows of the table of settings, in the order of help. */
export const ADMIN_TABLE: { readonly [Name in keyof AdminConfig]: Setting<AdminConfig[Name]> } = {
  adminTlsCertFile: setting(
    'adminTlsCertFile',
    '<file>',
    '',
    parseText,
    'certificate (PEM) of --admin-listen; whoever uses it has to log in then; default: no TLS',
  ),
  adminTlsPrivateKeyFile: setting(
    'adminTlsPrivateKeyFile',
    '<file>',
    '',
    parseText,
    'private key (PEM) of --admin-tls-cert-file',
  ),
  adminTokenFile: setting(
    'adminTokenFile',
    '<file>',
    '',
    parseText,
    'file with a bearer token that may use all of --admin-listen; default: none',
  ),
}

export function readAdmin(reader: SettingsReader): AdminConfig {
  const table = ADMIN_TABLE
  return {
    adminTlsCertFile: reader.take(table.adminTlsCertFile, ''),
    adminTlsPrivateKeyFile: reader.take(table.adminTlsPrivateKeyFile, ''),
    adminTokenFile: reader.take(table.adminTokenFile, ''),
  }
}

/** Errors in combinations of settings. @param listen with its address; undefined = reported before */
export function checkAdmin(
  { adminTlsCertFile, adminTlsPrivateKeyFile, adminTokenFile }: AdminConfig,
  listen: { readonly setting: Setting; readonly address: ListenAddress | undefined },
  source: 'embedded' | 'files' | 'kubernetes',
  reader: SettingsReader,
): void {
  const { adminTlsCertFile: cert, adminTlsPrivateKeyFile: key, adminTokenFile: token } = ADMIN_TABLE
  const needs = (at: Setting, other: Setting): void =>
    addProblem(reader, at, `is given without ${other.flag}`, `give ${namesOf(other)} too, or neither`)
  if (adminTlsCertFile !== '' && adminTlsPrivateKeyFile === '') needs(cert, key)
  if (adminTlsPrivateKeyFile !== '' && adminTlsCertFile === '') needs(key, cert)
  if (source === 'files' && adminTlsCertFile !== '' && adminTokenFile === '') {
    const fix = `give ${namesOf(token)}: no API server knows users here`
    addProblem(reader, cert, 'is given, and nobody can log in', fix)
  }
  if (listen.address === undefined || isLoopback(listen.address.host) || adminTlsCertFile !== '') return
  const fix = `give ${namesOf(cert)}, or a loopback address; for /metrics alone there is --health-listen`
  addProblem(reader, listen.setting, 'is not a loopback address, and has no TLS and no login', fix)
}
