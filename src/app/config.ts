// The settings of the process: one table, read from flags, PORTCULLIS_* variables and a YAML file, in this order of
// precedence. All mistakes are reported at once, each with where it stands, the value and the fix.

import { availableParallelism, hostname } from 'node:os'
import { type ListenAddress, parseListenAddress } from '../core/listen-address.ts'
import { LOG_LEVELS, type LogLevel } from '../io/log.ts'
import { checkListeners, type Listeners } from './listen-checks.ts'
import { checkProtection, PROTECTION_TABLE, type ProtectionConfig, readProtection } from './protection-config.ts'
import {
  bytesBetween,
  durationBetween,
  integerBetween,
  oneOf,
  parseAddress,
  parseAddresses,
  parseOneAddress,
  parseRedisUrl,
  parseSubjects,
  parseSwitch,
  parseText,
  parseTexts,
} from './setting-values.ts'
import { type ConfigProblem, type Setting, type SettingsInput, SettingsReader, setting } from './settings-reader.ts'

/** What `serve` runs with. Frozen. */
export interface Config {
  readonly source: SourceKind
  /** '' unless the source is files. */
  readonly configDir: string
  /** Of the embedded API server, and of the webhook that CRDs of a cluster are checked by. */
  readonly controlListen: ListenAddress
  /** Names and addresses in the serving certificate of `controlListen`, beside those of this machine. */
  readonly controlHosts: readonly string[]
  /** `user:NAME` or `group:NAME`. */
  readonly controlAdmins: readonly string[]
  readonly controlViewers: readonly string[]
  /** Encrypts Secrets at rest; '' = one in dataDir. */
  readonly storeKeyFile: string
  /** Of the cluster whose CRDs are the source; '' = that of the pod that this is. */
  readonly kubeconfig: string
  readonly context: string
  readonly installCrds: boolean
  /** Unique among the replicas. */
  readonly replicaName: string
  /** '' = no limits across replicas. */
  readonly redisUrl: string
  readonly redisPasswordFile: string
  /** How many replicas there are, as long as Redis has never said so. */
  readonly expectedReplicas: number
  readonly listen: readonly ListenAddress[]
  readonly adminListen: string
  readonly dataDir: string
  readonly drainTimeoutMs: number
  /** Both '' or both set. */
  readonly tlsCertFile: string
  readonly tlsPrivateKeyFile: string
  readonly accessLog: boolean
  /** '' = no audit log, '-' = stdout. */
  readonly auditLogPath: string
  readonly logLevel: LogLevel
  readonly maxHeaderBytes: number
  readonly maxConcurrentStreams: number
  readonly headerTimeoutMs: number
  /** Gateway threads. */
  readonly threads: number
  readonly protection: ProtectionConfig
  /** What is doubtful but does not stop the gateway; one line each. */
  readonly warnings: readonly string[]
}

export type SourceKind = 'embedded' | 'files' | 'kubernetes'

/** All mistakes; `message` is one line for each. */
export class ConfigError extends Error {
  readonly problems: readonly ConfigProblem[]

  constructor(problems: readonly ConfigProblem[]) {
    super(problems.map((problem) => `${problem.where}: ${problem.message}; ${problem.fix}`).join('\n'))
    this.name = 'ConfigError'
    this.problems = problems
  }
}

const HOUR = 3_600_000
/** More than the processors of any machine. */
const MOST_THREADS = 1024

const TABLE = {
  source: setting<SourceKind>(
    'source',
    '<kind>',
    '',
    oneOf(['embedded', 'files', 'kubernetes']),
    'where objects live: embedded (an API server of our own), files (a directory, watched) or kubernetes (CRDs of a ' +
      'cluster); default: files with --config-dir, else embedded',
  ),
  configDir: setting('configDir', '<dir>', '', parseText, 'directory of UpstreamCluster files, for --source files'),
  controlListen: setting(
    'controlListen',
    '<host:port>',
    '0.0.0.0:9443',
    parseOneAddress,
    'address of the embedded API server, and of the webhook for CRDs; TLS with client certificates or tokens',
  ),
  controlHosts: setting(
    'controlHost',
    '<host>',
    '',
    parseTexts,
    'name or address by which the embedded API server is reached, for its certificate; may be repeated',
    true,
  ),
  controlAdmins: setting(
    'controlAdmin',
    '<subject>',
    '',
    parseSubjects,
    'who may edit objects, beside group:portcullis:admins: user:NAME or group:NAME; may be repeated',
    true,
  ),
  controlViewers: setting(
    'controlViewer',
    '<subject>',
    '',
    parseSubjects,
    'who may read objects (no Secrets), beside group:portcullis:viewers; may be repeated',
    true,
  ),
  storeKeyFile: setting(
    'storeKeyFile',
    '<file>',
    '',
    parseText,
    'key that Secrets are encrypted with at rest, 32 bytes; default: one that is made in --data-dir',
  ),
  kubeconfig: setting(
    'kubeconfig',
    '<file>',
    '',
    parseText,
    'cluster that holds the objects, for --source kubernetes; default: the one that this runs in',
  ),
  context: setting('context', '<name>', '', parseText, 'context in --kubeconfig; default: its current one'),
  installCrds: setting(
    'installCrds',
    '[bool]',
    'true',
    parseSwitch,
    'whether --source kubernetes creates and updates the CustomResourceDefinitions; else they must be there',
  ),
  replicaName: setting(
    'replicaName',
    '<name>',
    '',
    parseText,
    'name of this replica in status and leases; default: the host name',
  ),
  redisUrl: setting(
    'redisUrl',
    '<url>',
    '',
    parseRedisUrl,
    'redis:// or rediss:// URL of the Redis that replicas share global limits by; default: none',
  ),
  redisPasswordFile: setting('redisPasswordFile', '<file>', '', parseText, 'password of --redis-url, alone in a file'),
  expectedReplicas: setting(
    'expectedReplicas',
    '<n>',
    '1',
    integerBetween(1, 1_000),
    'how many replicas share global limits, for as long as Redis could not be asked',
  ),
  listen: setting(
    'listen',
    '<host:port>',
    '0.0.0.0:8443',
    parseAddresses,
    'address that clients connect to; may be repeated',
    true,
  ),
  adminListen: setting(
    'adminListen',
    '<host:port>',
    '127.0.0.1:9090',
    parseAddress,
    'address of health, metrics and debug pages; without TLS and authentication',
  ),
  dataDir: setting('dataDir', '<dir>', 'data', parseText, 'directory for what the gateway writes'),
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
  accessLog: setting(
    'accessLog',
    '[bool]',
    'true',
    parseSwitch,
    'whether clusters and policies may switch the access log on (stdout)',
  ),
  auditLogPath: setting('auditLogPath', '<file>', '', parseText, 'file for audit events of all requests; - is stdout'),
  logLevel: setting('logLevel', '<level>', 'info', oneOf(LOG_LEVELS), 'debug, info, warn or error'),
  maxHeaderBytes: setting(
    'maxHeaderBytes',
    '<bytes>',
    '1048576',
    bytesBetween(4096, 64 * 1024 * 1024),
    'largest request head',
  ),
  maxConcurrentStreams: setting(
    'maxConcurrentStreams',
    '<n>',
    '250',
    integerBetween(1, 100_000),
    'requests that one HTTP/2 connection may have open',
  ),
  headerTimeout: setting(
    'headerTimeout',
    '<duration>',
    '10s',
    durationBetween(100, HOUR),
    'how long a client may take to send a request head',
  ),
  threads: setting(
    'threads',
    '<n>',
    '',
    integerBetween(1, MOST_THREADS),
    'threads that serve requests; default: one for each processor',
  ),
  ...PROTECTION_TABLE,
}

/** Every setting, in the order of help and documentation. */
export const SETTINGS: readonly Setting[] = Object.values(TABLE)

/** The setting that names the configuration file; a flag and a variable only. */
export const CONFIG_FILE: Setting<string> = setting(
  'config',
  '<file>',
  '',
  parseText,
  'YAML file of settings, keys as the flags in camelCase',
)

/** Throws a ConfigError that holds every mistake. */
export function loadConfig(input: SettingsInput): Config {
  const reader = new SettingsReader(input, SETTINGS, CONFIG_FILE)
  const configDir = reader.take(TABLE.configDir, '')
  const values: Omit<Config, 'warnings'> = {
    source: reader.take(TABLE.source, configDir === '' ? 'embedded' : 'files'),
    configDir,
    controlListen: reader.take(TABLE.controlListen, { host: '', port: 0 }),
    controlHosts: reader.take(TABLE.controlHosts, []),
    controlAdmins: reader.take(TABLE.controlAdmins, []),
    controlViewers: reader.take(TABLE.controlViewers, []),
    storeKeyFile: reader.take(TABLE.storeKeyFile, ''),
    kubeconfig: reader.take(TABLE.kubeconfig, ''),
    context: reader.take(TABLE.context, ''),
    installCrds: reader.take(TABLE.installCrds, true),
    replicaName: reader.take(TABLE.replicaName, hostname()),
    redisUrl: reader.take(TABLE.redisUrl, ''),
    redisPasswordFile: reader.take(TABLE.redisPasswordFile, ''),
    expectedReplicas: reader.take(TABLE.expectedReplicas, 1),
    listen: reader.take(TABLE.listen, []),
    adminListen: reader.take(TABLE.adminListen, ''),
    dataDir: reader.take(TABLE.dataDir, ''),
    drainTimeoutMs: reader.take(TABLE.drainTimeout, 0),
    tlsCertFile: reader.take(TABLE.tlsCertFile, ''),
    tlsPrivateKeyFile: reader.take(TABLE.tlsPrivateKeyFile, ''),
    accessLog: reader.take(TABLE.accessLog, true),
    auditLogPath: reader.take(TABLE.auditLogPath, ''),
    logLevel: reader.take(TABLE.logLevel, 'info'),
    maxHeaderBytes: reader.take(TABLE.maxHeaderBytes, 0),
    maxConcurrentStreams: reader.take(TABLE.maxConcurrentStreams, 0),
    headerTimeoutMs: reader.take(TABLE.headerTimeout, 0),
    threads: reader.take(TABLE.threads, availableParallelism()),
    protection: readProtection(reader),
  }
  checkTogether(values, reader)
  if (reader.problems.length > 0) throw new ConfigError(reader.problems)
  return Object.freeze({ ...values, warnings: Object.freeze(reader.warnings) })
}

/** Mistakes that only two settings together make. */
function checkTogether(config: Omit<Config, 'warnings'>, reader: SettingsReader): void {
  const problem = (at: Setting, message: string, fix: string): void => {
    reader.problems.push({ where: reader.where(at), message, fix })
  }
  const { source } = config
  if (source === 'files' && config.configDir === '' && !isWrong(reader, TABLE.configDir)) {
    problem(TABLE.configDir, 'no directory of UpstreamCluster files is given', `give ${namesOf(TABLE.configDir)}`)
  }
  if (source !== 'files' && config.configDir !== '') {
    problem(TABLE.configDir, `has no meaning with --source ${source}`, 'remove it, or write --source files')
  }
  if (source !== 'kubernetes' && config.kubeconfig !== '') {
    problem(TABLE.kubeconfig, `has no meaning with --source ${source}`, 'remove it, or write --source kubernetes')
  }
  if (config.redisPasswordFile !== '' && config.redisUrl === '' && !isWrong(reader, TABLE.redisUrl)) {
    problem(TABLE.redisPasswordFile, `stands without ${TABLE.redisUrl.flag}`, `give ${namesOf(TABLE.redisUrl)} too`)
  }
  if ((config.tlsCertFile === '') !== (config.tlsPrivateKeyFile === '')) {
    const missing = config.tlsCertFile === '' ? TABLE.tlsCertFile : TABLE.tlsPrivateKeyFile
    const given = config.tlsCertFile === '' ? TABLE.tlsPrivateKeyFile : TABLE.tlsCertFile
    problem(given, `stands without ${missing.flag}`, `give ${namesOf(missing)} too, or neither`)
  }
  checkProtection(config.protection, source, reader)
  checkListeners(listenersOf(config), reader)
}

function listenersOf({ source, listen, controlListen, adminListen, protection }: Omit<Config, 'warnings'>): Listeners {
  return {
    listen: { setting: TABLE.listen, addresses: listen },
    admin: { setting: TABLE.adminListen, address: readAddress(adminListen) },
    others: [
      ...(source === 'files' ? [] : [{ setting: TABLE.controlListen, address: controlListen }]),
      { setting: TABLE.protectionListen, address: readAddress(protection.listen ?? '') },
    ],
  }
}

function readAddress(text: string): ListenAddress | undefined {
  const address = parseListenAddress(text)
  return 'error' in address ? undefined : address
}

function isWrong(reader: SettingsReader, setting: Setting): boolean {
  return reader.problems.some((known) => known.where === reader.where(setting))
}

function namesOf(setting: Setting): string {
  return `${setting.flag}, ${setting.env} or ${setting.name} in the configuration file`
}
