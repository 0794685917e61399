// The settings of the health listener: what probes, load balancers and Prometheus reach from other machines.

import { isLoopback, type ListenAddress } from '../../core/cluster/listen-address.ts'
import { addProblem, namesOf } from './setting-problems.ts'
import { parseHostPort, parseText } from './setting-values.ts'
import { type Setting, type SettingsReader, setting } from './settings-reader.ts'

export interface HealthConfig {
  /** undefined = it is not opened. */
  readonly healthListen: ListenAddress | undefined
  /** Both '' (no TLS) or both set. */
  readonly healthTlsCertFile: string
  readonly healthTlsPrivateKeyFile: string
  /** '' = none. */
  readonly metricsTokenFile: string
}

type TextName = 'healthTlsCertFile' | 'healthTlsPrivateKeyFile' | 'metricsTokenFile'

/** Rows of the table of settings, in the order of help. */
export const HEALTH_TABLE: Readonly<Record<TextName, Setting<string>>> & {
  readonly healthListen: Setting<ListenAddress>
} = {
  healthListen: setting(
    'healthListen',
    '<host:port>',
    '',
    parseHostPort,
    'address of /livez, /readyz and /metrics for probes, load balancers and Prometheus; default: none',
  ),
  healthTlsCertFile: setting(
    'healthTlsCertFile',
    '<file>',
    '',
    parseText,
    'certificate (PEM) of --health-listen; default: no TLS',
  ),
  healthTlsPrivateKeyFile: setting(
    'healthTlsPrivateKeyFile',
    '<file>',
    '',
    parseText,
    'private key (PEM) of --health-tls-cert-file',
  ),
  metricsTokenFile: setting(
    'metricsTokenFile',
    '<file>',
    '',
    parseText,
    'file with the bearer token that /metrics of --health-listen asks for',
  ),
}

export function readHealth(reader: SettingsReader): HealthConfig {
  const table = HEALTH_TABLE
  return {
    healthListen: reader.take(table.healthListen, undefined),
    healthTlsCertFile: reader.take(table.healthTlsCertFile, ''),
    healthTlsPrivateKeyFile: reader.take(table.healthTlsPrivateKeyFile, ''),
    metricsTokenFile: reader.take(table.metricsTokenFile, ''),
  }
}

/** Errors and warnings about combinations of settings. */
export function checkHealth(
  { healthListen, healthTlsCertFile, healthTlsPrivateKeyFile, metricsTokenFile }: HealthConfig,
  source: 'embedded' | 'files' | 'kubernetes',
  reader: SettingsReader,
): void {
  const { healthTlsCertFile: cert, healthTlsPrivateKeyFile: key, metricsTokenFile: token } = HEALTH_TABLE
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
    if (reader.isGiven(HEALTH_TABLE.healthListen)) return
    for (const [value, at] of given) if (value !== '') needs(at, HEALTH_TABLE.healthListen, 'remove it')
    return
  }
  const tokens = metricsTokenFile !== '' || source === 'kubernetes'
  if (tokens && healthTlsCertFile === '' && !isLoopback(healthListen.host)) {
    reader.warnings.push(
      `${reader.where(HEALTH_TABLE.healthListen)}: has no TLS; bearer tokens for /metrics cross the network in clear`,
    )
  }
}
