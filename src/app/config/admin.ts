// The settings of the admin listener where other machines reach it: TLS and login.

import { isLoopback, type ListenAddress } from '../../core/cluster/listen-address.ts'
import { addProblem, namesOf } from './setting-problems.ts'
import { parseHostPort, parseHostPorts, parseText } from './setting-values.ts'
import { type Setting, type SettingsReader, setting } from './settings-reader.ts'

export interface AdminConfig {
  /** Both '' (no TLS) or both set. */
  readonly adminTlsCertFile: string
  readonly adminTlsPrivateKeyFile: string
  /** '' = none. */
  readonly adminTokenFile: string
  /** undefined = the address of --admin-listen, if others reach it. */
  readonly adminAdvertise: ListenAddress | undefined
  /** Empty = the replicas whose Leases tell of an address. */
  readonly adminPeers: readonly ListenAddress[]
  /** '' = their certificate is that of this replica. */
  readonly adminCaFile: string
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
  adminAdvertise: setting(
    'adminAdvertise',
    '<host:port>',
    '',
    parseHostPort,
    'address at which other replicas reach --admin-listen; default: that address, unless it is a loopback one or means all',
  ),
  adminPeers: setting(
    'adminPeers',
    '<host:port>',
    '',
    parseHostPorts,
    'admin listeners of the other replicas; may be repeated; default: those that their Leases tell of',
    true,
  ),
  adminCaFile: setting(
    'adminCaFile',
    '<file>',
    '',
    parseText,
    'CAs (PEM) that verify the admin listeners of other replicas; default: they have the certificate of this one',
  ),
}

export function readAdmin(reader: SettingsReader): AdminConfig {
  const table = ADMIN_TABLE
  return {
    adminTlsCertFile: reader.take(table.adminTlsCertFile, ''),
    adminTlsPrivateKeyFile: reader.take(table.adminTlsPrivateKeyFile, ''),
    adminTokenFile: reader.take(table.adminTokenFile, ''),
    adminAdvertise: reader.take(table.adminAdvertise, undefined),
    adminPeers: reader.take(table.adminPeers, []),
    adminCaFile: reader.take(table.adminCaFile, ''),
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
