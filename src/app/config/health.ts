// The settings of the health listener: what probes, load balancers and Prometheus reach from other machines.

import { isLoopback } from '../../core/cluster/listen-address.ts'
import { addProblem, namesOf } from './setting-problems.ts'
import { file, optional, type Setting, settings, type ValuesOf } from './setting-rows.ts'
import { parseHostPort } from './setting-values.ts'
import type { SettingsReader } from './settings-reader.ts'

export const HEALTH = settings({
  /** undefined = it is not opened. */
  healthListen: optional(
    '<host:port>',
    parseHostPort,
    'address of /livez, /readyz and /metrics for probes, load balancers and Prometheus; default: none',
  ),
  /** Both '' (no TLS) or both set. */
  healthTlsCertFile: file('certificate (PEM) of --health-listen; default: no TLS'),
  healthTlsPrivateKeyFile: file('private key (PEM) of --health-tls-cert-file'),
  /** '' = none. */
  metricsTokenFile: file('file with the bearer token that /metrics of --health-listen asks for'),
})

export type HealthConfig = ValuesOf<typeof HEALTH>

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
    // An address that is wrong has been reported.
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
