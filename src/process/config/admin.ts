// Settings of the admin listener for access from other machines, TLS and login, and of the health listener.

import { isLoopback, type ListenAddress } from '../../kit/core/listen-address.ts'
import { addProblem, namesOf } from './setting-problems.ts'
import { file, list, optional, type Setting, settings, type ValuesOf } from './setting-rows.ts'
import { parseHostPort, parseHostPorts } from './setting-values.ts'
import type { SettingsReader } from './settings-reader.ts'

export const ADMIN = settings({
  /** Both '' (no TLS) or both set. */
  adminTlsCertFile: file('certificate (PEM) of --admin-listen; clients must then log in; default: no TLS'),
  adminTlsPrivateKeyFile: file('private key (PEM) of --admin-tls-cert-file'),
  /** '' = none. */
  adminTokenFile: file('file with a bearer token that gives access to all of --admin-listen; default: none'),
  /** undefined = the address of --admin-listen, if reachable from other machines. */
  adminAdvertise: optional(
    '<host:port>',
    parseHostPort,
    'address at which other replicas reach --admin-listen; default: that address, unless it is a loopback or wildcard address',
  ),
  /** Empty = the replicas whose Leases contain an address. */
  adminPeers: list(
    '<host:port>',
    '',
    parseHostPorts,
    'admin listeners of the other replicas; may be repeated; default: those in their Leases',
  ),
  /** '' = they use this replica's certificate. */
  adminCaFile: file(
    'CAs (PEM) that verify the admin listeners of other replicas; default: they must have the same certificate as this one',
  ),
})

type AdminConfig = ValuesOf<typeof ADMIN>

/** Errors in combinations of settings. @param listen with its address; undefined = already reported */
export function checkAdmin(
  { adminTlsCertFile, adminTlsPrivateKeyFile, adminTokenFile }: AdminConfig,
  listen: { readonly setting: Setting; readonly address: ListenAddress | undefined },
  source: 'embedded' | 'files' | 'kubernetes',
  reader: SettingsReader,
): void {
  const { adminTlsCertFile: cert, adminTlsPrivateKeyFile: key, adminTokenFile: token } = ADMIN
  const needs = (at: Setting, other: Setting): void =>
    addProblem(reader, at, `is given without ${other.flag}`, `give ${namesOf(other)} too, or neither`)
  if (adminTlsCertFile !== '' && adminTlsPrivateKeyFile === '') needs(cert, key)
  if (adminTlsPrivateKeyFile !== '' && adminTlsCertFile === '') needs(key, cert)
  if (source === 'files' && adminTlsCertFile !== '' && adminTokenFile === '') {
    const fix = `give ${namesOf(token)}: no API server knows users here`
    addProblem(reader, cert, 'is given, but there is no way to log in', fix)
  }
  if (listen.address === undefined || isLoopback(listen.address.host) || adminTlsCertFile !== '') return
  const fix = `give ${namesOf(cert)}, or a loopback address; for /metrics alone there is --health-listen`
  addProblem(reader, listen.setting, 'is not a loopback address, and has no TLS and no login', fix)
}

// Settings of the health listener: reached by probes, load balancers and Prometheus from other machines.
export const HEALTH = settings({
  /** undefined = not opened. */
  healthListen: optional(
    '<host:port>',
    parseHostPort,
    'address of /livez, /readyz and /metrics for probes, load balancers and Prometheus; default: none',
  ),
  /** Both '' (no TLS) or both set. */
  healthTlsCertFile: file('certificate (PEM) of --health-listen; default: no TLS'),
  healthTlsPrivateKeyFile: file('private key (PEM) of --health-tls-cert-file'),
  /** '' = none. */
  metricsTokenFile: file('file with the bearer token that /metrics of --health-listen requires'),
})

type HealthConfig = ValuesOf<typeof HEALTH>

/** Errors and warnings about combinations of settings. */
export function checkHealth(
  { healthListen, healthTlsCertFile, healthTlsPrivateKeyFile, metricsTokenFile }: HealthConfig,
  source: 'embedded' | 'files' | 'kubernetes',
  reader: SettingsReader,
): void {
  const { healthTlsCertFile: cert, healthTlsPrivateKeyFile: key, metricsTokenFile: token } = HEALTH
  const needs = (at: Setting, other: Setting, otherwise: string): void =>
    addProblem(reader, at, `is given without ${other.flag}`, `give ${namesOf(other)} too, or ${otherwise}`)
  if (healthTlsCertFile !== '' && healthTlsPrivateKeyFile === '') needs(cert, key, 'neither')
  if (healthTlsPrivateKeyFile !== '' && healthTlsCertFile === '') needs(key, cert, 'neither')
  if (healthListen === undefined) {
    const given: [string, Setting][] = [
      [healthTlsCertFile, cert],
      [healthTlsPrivateKeyFile, key],
      [metricsTokenFile, token],
    ]
    // An invalid address has already been reported.
    if (reader.isGiven(HEALTH.healthListen)) return
    for (const [value, at] of given) if (value !== '') needs(at, HEALTH.healthListen, 'remove it')
    return
  }
  const tokens = metricsTokenFile !== '' || source === 'kubernetes'
  if (tokens && healthTlsCertFile === '' && !isLoopback(healthListen.host)) {
    reader.warnings.push(
      `${reader.where(HEALTH.healthListen)}: has no TLS; bearer tokens for /metrics cross the network in clear`,
    )
  }
}
