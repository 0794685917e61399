// The settings of serving: where clients connect, the number of threads, and what is logged. Limits for clients are in client-limits.ts.

import { availableParallelism } from 'node:os'
import { parseCidr } from '../../core/cluster/cidr.ts'
import type { CompiledCidr } from '../../core/cluster/compiled-cluster.ts'
import type { ListenAddress } from '../../core/cluster/listen-address.ts'
import { DIMENSIONS, type Dimension } from '../../core/top/measures.ts'
import { CIPHER_SUITES, TLS_VERSIONS, type TlsVersion } from '../../io/listener/tls-policy.ts'
import { LOG_LEVELS, type LogLevel } from '../../io/logs/log.ts'
import { addProblem, isWrong, namesOf } from './setting-problems.ts'
import {
  durationBetween,
  integerBetween,
  oneOf,
  parseAddress,
  parseAddresses,
  parseCidrs,
  parseHosts,
  parseSwitch,
  parseText,
  parseTexts,
  someOf,
} from './setting-values.ts'
import { type Setting, type SettingsReader, setting } from './settings-reader.ts'

export interface ServingConfig {
  readonly listen: readonly ListenAddress[]
  /** Who sends PROXY headers; others are not believed. */
  readonly proxyProtocolFrom: readonly CompiledCidr[]
  readonly proxyProtocolOthers: ProxyProtocolOthers
  readonly adminListen: string
  readonly dataDir: string
  /** From the signal to the drain; meanwhile only readyz has changed. */
  readonly shutdownDelayMs: number
  readonly drainTimeoutMs: number
  /** Both '' or both set. */
  readonly tlsCertFile: string
  readonly tlsPrivateKeyFile: string
  /** Names and addresses in the certificate that the gateway makes itself, in addition to those of this machine. */
  readonly servingHosts: readonly string[]
  readonly tlsMinVersion: TlsVersion
  /** Names of kube-apiserver's; [] = those of Node. */
  readonly tlsCipherSuites: readonly string[]
  readonly accessLog: boolean
  /** '' = no audit log, '-' = stdout. */
  readonly auditLogPath: string
  readonly logLevel: LogLevel
  /** Whether who asks most is counted. */
  readonly top: boolean
  /** What has metrics of its first ten. */
  readonly topMetrics: readonly Dimension[]
  /** Gateway threads. */
  readonly threads: number
  /** A turn of an event loop of at least this long is reported. */
  readonly stallThresholdMs: number
}

/** What becomes of connections from other addresses to a port with PROXY protocol. */
export type ProxyProtocolOthers = (typeof PROXY_PROTOCOL_OTHERS)[number]
const PROXY_PROTOCOL_OTHERS = ['refuse', 'plain'] as const

/** Settings whose values have the same names, without the unit. */
type TimeName = 'shutdownDelay' | 'drainTimeout' | 'stallThreshold'
type PlainName = Exclude<keyof ServingConfig, `${TimeName}Ms`>

const HOUR = 3_600_000
/** More than the processors of any machine. */
const MOST_THREADS = 1024

/** Rows of the table of settings, in the order of help. */
export const SERVING_TABLE: { readonly [Name in PlainName]: Setting<ServingConfig[Name]> } & Readonly<
  Record<TimeName, Setting<number>>
> = {
  listen: setting(
    'listen',
    '<host:port>',
    '0.0.0.0:8443',
    parseAddresses,
    'address that clients connect to; may be repeated; with /proxy-protocol behind it, a PROXY header comes first',
    true,
  ),
  proxyProtocolFrom: setting(
    'proxyProtocolFrom',
    '<cidr>',
    '',
    parseCidrs,
    'addresses of load balancers whose PROXY headers are believed; may be repeated',
    true,
  ),
  proxyProtocolOthers: setting(
    'proxyProtocolOthers',
    '<what>',
    'refuse',
    oneOf(PROXY_PROTOCOL_OTHERS),
    'connections from other addresses to such a port: refuse, or plain (served without a PROXY header)',
  ),
  adminListen: setting(
    'adminListen',
    '<host:port>',
    '127.0.0.1:9090',
    parseAddress,
    'address of health, metrics, dashboard and debug pages; without TLS and login only a loopback address',
  ),
  dataDir: setting('dataDir', '<dir>', 'data', parseText, 'directory for what the gateway writes'),
  shutdownDelay: setting(
    'shutdownDelay',
    '<duration>',
    '0s',
    durationBetween(0, HOUR),
    'how long a gateway that is told to stop serves on, with a failing readyz, before it drains',
  ),
  drainTimeout: setting(
    'drainTimeout',
    '<duration>',
    '30s',
    durationBetween(0, 24 * HOUR),
    'how long a stopping gateway waits for running requests and spreads the end of watches',
  ),
  tlsCertFile: setting(
    'tlsCertFile',
    '<file>',
    '',
    parseText,
    'certificate (PEM) for clients whose cluster has none of its own',
  ),
  tlsPrivateKeyFile: setting('tlsPrivateKeyFile', '<file>', '', parseText, 'private key (PEM) of --tls-cert-file'),
  servingHosts: setting(
    'servingHost',
    '<host>',
    '',
    parseHosts,
    'name or address by which clients reach the gateway, for the certificate that it makes itself; may be repeated',
    true,
  ),
  tlsMinVersion: setting(
    'tlsMinVersion',
    '<version>',
    'VersionTLS12',
    oneOf(TLS_VERSIONS),
    `oldest version of TLS that clients may use, on every port with TLS: ${TLS_VERSIONS.join(' or ')}`,
  ),
  tlsCipherSuites: setting(
    'tlsCipherSuites',
    '<suite>',
    '',
    someOf(CIPHER_SUITES),
    "cipher suites of TLS 1.2 by kube-apiserver's names, the most preferred first; may be repeated; default: those of Node",
    true,
  ),
  accessLog: setting(
    'accessLog',
    '[bool]',
    'true',
    parseSwitch,
    'whether clusters and policies may switch the access log on (stdout)',
  ),
  auditLogPath: setting('auditLogPath', '<file>', '', parseText, 'file for audit events of all requests; - is stdout'),
  logLevel: setting('logLevel', '<level>', 'info', oneOf(LOG_LEVELS), 'debug, info, warn or error'),
  top: setting('top', '[bool]', 'true', parseSwitch, 'whether it is counted who asks most, for portcullis top'),
  topMetrics: setting(
    'topMetrics',
    '<dimension>',
    '',
    someOf(DIMENSIONS),
    `what has metrics of the first ten: ${DIMENSIONS.join(', ')}; may be repeated; default: none`,
    true,
  ),
  threads: setting(
    'threads',
    '<n>',
    '',
    integerBetween(1, MOST_THREADS),
    'threads that serve requests; default: one for each processor',
  ),
  stallThreshold: setting(
    'stallThreshold',
    '<duration>',
    '50ms',
    durationBetween(10, 60_000),
    'turns of an event loop that take at least as long are counted and logged',
  ),
}

export function readServing(reader: SettingsReader): ServingConfig {
  const table = SERVING_TABLE
  return {
    listen: reader.take(table.listen, []),
    proxyProtocolFrom: reader.take(table.proxyProtocolFrom, []),
    proxyProtocolOthers: reader.take(table.proxyProtocolOthers, 'refuse'),
    adminListen: reader.take(table.adminListen, ''),
    dataDir: reader.take(table.dataDir, ''),
    shutdownDelayMs: reader.take(table.shutdownDelay, 0),
    drainTimeoutMs: reader.take(table.drainTimeout, 0),
    tlsCertFile: reader.take(table.tlsCertFile, ''),
    tlsPrivateKeyFile: reader.take(table.tlsPrivateKeyFile, ''),
    servingHosts: reader.take(table.servingHosts, []),
    tlsMinVersion: reader.take(table.tlsMinVersion, 'VersionTLS12'),
    tlsCipherSuites: reader.take(table.tlsCipherSuites, []),
    accessLog: reader.take(table.accessLog, true),
    auditLogPath: reader.take(table.auditLogPath, ''),
    logLevel: reader.take(table.logLevel, 'info'),
    top: reader.take(table.top, true),
    topMetrics: reader.take(table.topMetrics, []),
    threads: reader.take(table.threads, availableParallelism()),
    stallThresholdMs: reader.take(table.stallThreshold, 0),
  }
}

/** Errors in combinations of settings. */
export function checkServing(config: ServingConfig, reader: SettingsReader): void {
  checkProxyProtocol(config, reader)
  const { tlsCertFile, tlsPrivateKeyFile, servingHosts } = config
  if (servingHosts.length > 0 && tlsCertFile !== '') {
    const message = `is given, and the certificate is that of ${SERVING_TABLE.tlsCertFile.flag}`
    addProblem(
      reader,
      SERVING_TABLE.servingHosts,
      message,
      'leave one of them out; a certificate that is given has its names',
    )
  }
  if ((tlsCertFile === '') === (tlsPrivateKeyFile === '')) return
  const { tlsCertFile: cert, tlsPrivateKeyFile: key } = SERVING_TABLE
  const [missing, given] = tlsCertFile === '' ? [cert, key] : [key, cert]
  addProblem(reader, given, `is given without ${missing.flag}`, `give ${namesOf(missing)} too, or neither`)
}

function checkProxyProtocol(
  { listen, proxyProtocolFrom, proxyProtocolOthers }: ServingConfig,
  reader: SettingsReader,
): void {
  const { listen: address, proxyProtocolFrom: from, proxyProtocolOthers: others } = SERVING_TABLE
  // An address that is wrong has been reported.
  if (listen.length === 0 || isWrong(reader, from)) return
  const used = listen.some(({ proxyProtocol }) => proxyProtocol === true)
  if (used && proxyProtocolFrom.length === 0) {
    const fix = `say whose headers are believed: ${namesOf(from)}`
    addProblem(reader, address, `has /proxy-protocol, and ${from.flag} is not given`, fix)
  }
  if (used) {
    warnOfWideRanges(reader)
    return
  }
  const fix = `write HOST:PORT/proxy-protocol in ${address.flag}, or remove it`
  const message = `is given, and no ${address.flag} has /proxy-protocol`
  if (proxyProtocolFrom.length > 0) addProblem(reader, from, message, fix)
  if (proxyProtocolOthers !== 'refuse') addProblem(reader, others, message, fix)
}

function warnOfWideRanges(reader: SettingsReader): void {
  const { proxyProtocolFrom } = SERVING_TABLE
  const where = reader.where(proxyProtocolFrom)
  for (const text of reader.take({ ...proxyProtocolFrom, parse: parseTexts }, [])) {
    const cidr = parseCidr(text)
    const bits = text.slice(text.indexOf('/') + 1)
    if (cidr?.bits === 0) {
      reader.warnings.push(`${where}: ${text} is everybody; whoever connects chooses its own client address`)
    } else if (cidr !== undefined && text.includes('/') && hasHostBits(text, cidr)) {
      const message = `${text} is the whole of its /${bits}; for one address leave the prefix out`
      reader.warnings.push(`${where}: ${message}`)
    }
  }
}

function hasHostBits(text: string, { bytes, bits }: CompiledCidr): boolean {
  const single = parseCidr(text.slice(0, text.indexOf('/')))
  return single !== undefined && bits < bytes.length * 8 && Buffer.compare(single.bytes, bytes) !== 0
}
