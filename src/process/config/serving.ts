// Settings of serving: listening addresses, number of threads, and logging. client-limits.ts has the limits for clients.

import { availableParallelism } from 'node:os'
import { CIPHER_SUITES, TLS_VERSIONS } from '../../gateway/io/listener/tls-policy.ts'
import type { CompiledCidr } from '../../kit/core/dial/cidr.ts'
import { parseCidr } from '../../kit/core/dial/cidr.ts'
import { LOG_LEVELS } from '../../kit/io/logs/log.ts'
import { DIMENSIONS } from '../api/dimensions.ts'
import { addProblem, isWrong, namesOf } from './setting-problems.ts'
import { choice, duration, file, integer, list, settings, text, toggle, type ValuesOf } from './setting-rows.ts'
import { parseAddress, parseAddresses, parseCidrs, parseHosts, parseTexts, someOf } from './setting-values.ts'
import type { SettingsReader } from './settings-reader.ts'

const PROXY_PROTOCOL_OTHERS = ['refuse', 'plain'] as const

const HOUR = 3_600_000
/** More than any machine has processors. */
const MOST_THREADS = 1024

export const SERVING = settings({
  listen: list(
    '<host:port>',
    '0.0.0.0:8443',
    parseAddresses,
    'address that clients connect to; may be repeated; with /proxy-protocol at its end, connections must begin with a PROXY header',
  ),
  /** Trusted senders of PROXY headers. */
  proxyProtocolFrom: list(
    '<cidr>',
    '',
    parseCidrs,
    'addresses of load balancers whose PROXY headers are trusted; may be repeated',
  ),
  proxyProtocolOthers: choice(
    '<what>',
    'refuse',
    PROXY_PROTOCOL_OTHERS,
    'what to do with connections from other addresses to such a port: refuse, or plain (serve them without a PROXY header)',
  ),
  adminListen: text(
    '<host:port>',
    '127.0.0.1:9090',
    'address of health, metrics, dashboard and debug pages; without TLS and login only a loopback address',
    { parse: parseAddress },
  ),
  dataDir: text('<dir>', 'data', "directory for the gateway's files"),
  /** From the signal to the drain; meanwhile only readyz changes. */
  shutdownDelayMs: duration(
    '0s',
    0,
    HOUR,
    'how long a stopping gateway keeps serving, with a failing /readyz, before it drains',
  ),
  drainTimeoutMs: duration(
    '30s',
    0,
    24 * HOUR,
    'how long a stopping gateway waits for requests in flight; watches end within half of it',
  ),
  /** Either both or none set. */
  tlsCertFile: file('certificate (PEM) for clients whose cluster has none of its own'),
  tlsPrivateKeyFile: file('private key (PEM) of --tls-cert-file'),
  /** Names and addresses in the self-made certificate, in addition to this machine's. */
  servingHosts: list(
    '<host>',
    '',
    parseHosts,
    'name or address by which clients reach the gateway, for the certificate that it generates; may be repeated',
    { setting: 'servingHost' },
  ),
  tlsMinVersion: choice(
    '<version>',
    'VersionTLS12',
    TLS_VERSIONS,
    `oldest version of TLS that clients may use, on every port with TLS: ${TLS_VERSIONS.join(' or ')}`,
  ),
  /** kube-apiserver's names; [] = Node's. */
  tlsCipherSuites: list(
    '<suite>',
    '',
    someOf(CIPHER_SUITES),
    "cipher suites of TLS 1.2 by kube-apiserver's names, the most preferred first; may be repeated; default: those of Node",
  ),
  accessLog: toggle(true, 'whether clusters and policies may switch the access log on (stdout)'),
  /** '' = no audit log, '-' = stdout. */
  auditLogPath: file('file for audit events of all requests; - is stdout'),
  logLevel: choice('<level>', 'info', LOG_LEVELS, 'debug, info, warn or error'),
  /** Whether top talkers are counted. */
  top: toggle(true, 'count requests by user, resource and so on, for portcullis top'),
  /** Dimensions whose top ten become metrics. */
  topMetrics: list(
    '<dimension>',
    '',
    someOf(DIMENSIONS),
    `groupings whose top ten names are exported as metrics: ${DIMENSIONS.join(', ')}; may be repeated; default: none`,
  ),
  /** Gateway threads. */
  threads: integer('', 1, MOST_THREADS, 'threads that serve requests; default: one for each processor', {
    absent: availableParallelism(),
  }),
  /** Event loop turns of at least this length are reported. */
  stallThresholdMs: duration(
    '50ms',
    10,
    60_000,
    'turns of an event loop that take at least as long are counted and logged',
  ),
})

type ServingConfig = ValuesOf<typeof SERVING>

/** Errors in combinations of settings. */
export function checkServing(config: ServingConfig, reader: SettingsReader): void {
  checkProxyProtocol(config, reader)
  const { tlsCertFile, tlsPrivateKeyFile, servingHosts } = config
  if (servingHosts.length > 0 && tlsCertFile !== '') {
    const message = `is given, and the certificate is that of ${SERVING.tlsCertFile.flag}`
    addProblem(
      reader,
      SERVING.servingHosts,
      message,
      'leave one of them out; a given certificate already contains its names',
    )
  }
  if ((tlsCertFile === '') === (tlsPrivateKeyFile === '')) return
  const { tlsCertFile: cert, tlsPrivateKeyFile: key } = SERVING
  const [missing, given] = tlsCertFile === '' ? [cert, key] : [key, cert]
  addProblem(reader, given, `is given without ${missing.flag}`, `give ${namesOf(missing)} too, or neither`)
}

function checkProxyProtocol(
  { listen, proxyProtocolFrom, proxyProtocolOthers }: ServingConfig,
  reader: SettingsReader,
): void {
  const { listen: address, proxyProtocolFrom: from, proxyProtocolOthers: others } = SERVING
  // An invalid address has already been reported.
  if (listen.length === 0 || isWrong(reader, from)) return
  const used = listen.some(({ proxyProtocol }) => proxyProtocol === true)
  if (used && proxyProtocolFrom.length === 0) {
    const fix = `say whose headers are trusted: ${namesOf(from)}`
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
  const { proxyProtocolFrom } = SERVING
  const where = reader.where(proxyProtocolFrom)
  for (const text of reader.take({ ...proxyProtocolFrom, parse: parseTexts, absent: [] })) {
    const cidr = parseCidr(text)
    const bits = text.slice(text.indexOf('/') + 1)
    if (cidr?.bits === 0) {
      reader.warnings.push(`${where}: ${text} covers every address: each client can choose its own source address`)
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
