// The settings of the objects: where UpstreamClusters and other objects live, and who may edit them in our own API server.

import { OWN_NAMESPACE } from '../../api/kube/own-names.ts'
import type { ListenAddress } from '../../core/cluster/listen-address.ts'
import type { AllowedServers } from '../../core/endpoints/dial-rules.ts'
import { addProblem, isWrong, namesOf } from './setting-problems.ts'
import {
  integerBetween,
  oneOf,
  parseAllowedServers,
  parseNamespaces,
  parseOneAddress,
  parseSubjects,
  parseSwitch,
  parseText,
  parseTexts,
} from './setting-values.ts'
import { type Setting, type SettingsReader, setting } from './settings-reader.ts'

export type SourceKind = 'embedded' | 'files' | 'kubernetes'

export interface ObjectsConfig {
  readonly source: SourceKind
  /** '' unless the source is files. */
  readonly configDir: string
  /** Of the embedded API server, or of the webhook that validates CRDs of a cluster. */
  readonly controlListen: ListenAddress
  /** Names and addresses in the serving certificate of `controlListen`, in addition to those of this machine. */
  readonly controlHosts: readonly string[]
  /** Connections to `controlListen` and to the webhook of pod protection together. */
  readonly maxControlConnections: number
  /** `user:NAME` or `group:NAME`. */
  readonly controlAdmins: readonly string[]
  readonly controlViewers: readonly string[]
  /** Audit log of requests to the embedded API server. '' = as `auditLogPath`, '-' = stdout. */
  readonly controlAuditLogPath: string
  /** Key that encrypts Secrets at rest; '' = one in dataDir. */
  readonly storeKeyFile: string
  /** Of the cluster whose CRDs are the source; '' = the service account of this pod. */
  readonly kubeconfig: string
  readonly context: string
  readonly installCrds: boolean
  /** Namespaces whose Secrets UpstreamClusters may refer to without a label on the Secret. */
  readonly secretNamespaces: readonly string[]
  /** Servers of UpstreamClusters that may be on this machine. */
  readonly allowLocalServers: readonly AllowedServers[]
}

/** Rows of the table of settings, in the order of help. */
export const OBJECTS_TABLE: { readonly [Name in keyof ObjectsConfig]: Setting<ObjectsConfig[Name]> } = {
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
  maxControlConnections: setting(
    'maxControlConnections',
    '<n>',
    '512',
    integerBetween(16, 1_000_000),
    'connections to --control-listen and --protection-listen together, a quarter at most without a valid credential; beyond, the user or address with most of them loses one',
  ),
  controlAdmins: setting(
    'controlAdmin',
    '<subject>',
    '',
    parseSubjects,
    'who may edit objects, in addition to group:portcullis:admins: user:NAME or group:NAME; may be repeated',
    true,
  ),
  controlViewers: setting(
    'controlViewer',
    '<subject>',
    '',
    parseSubjects,
    'who may read objects (no Secrets), in addition to group:portcullis:viewers; may be repeated',
    true,
  ),
  controlAuditLogPath: setting(
    'controlAuditLogPath',
    '<file>',
    '',
    parseText,
    'file for audit events of requests to the embedded API server; - is stdout; default: as --audit-log-path',
  ),
  storeKeyFile: setting(
    'storeKeyFile',
    '<file>',
    '',
    parseText,
    'key that encrypts Secrets in the store, 32 bytes; default: one created in --data-dir',
  ),
  kubeconfig: setting(
    'kubeconfig',
    '<file>',
    '',
    parseText,
    'cluster that holds the objects, for --source kubernetes; default: the one the gateway runs in',
  ),
  context: setting('context', '<name>', '', parseText, 'context in --kubeconfig; default: its current one'),
  installCrds: setting(
    'installCrds',
    '[bool]',
    'true',
    parseSwitch,
    'whether --source kubernetes creates and updates the CustomResourceDefinitions; otherwise they must exist',
  ),
  secretNamespaces: setting(
    'secretNamespace',
    '<namespace>',
    '',
    parseNamespaces,
    'namespace whose Secrets UpstreamClusters may name, without a label on the Secret; default: portcullis-system, and default in the ' +
      'embedded API server; may be repeated',
    true,
  ),
  allowLocalServers: setting(
    'allowLocalServers',
    '<host[:port]>',
    '',
    parseAllowedServers,
    'address or range, with a port or without, at which UpstreamClusters may have servers although it is loopback, link-local or a metadata ' +
      'service; ports of the gateway itself only where they are named; default: none; may be repeated',
    true,
  ),
}

export function readObjects(reader: SettingsReader): ObjectsConfig {
  const table = OBJECTS_TABLE
  const configDir = reader.take(table.configDir, '')
  const source = reader.take(table.source, configDir === '' ? 'embedded' : 'files')
  // In a cluster `default` holds other people's Secrets; in our own API server it does not.
  const namespaces = source === 'embedded' ? [OWN_NAMESPACE, 'default'] : [OWN_NAMESPACE]
  return {
    source,
    configDir,
    controlListen: reader.take(table.controlListen, { host: '', port: 0 }),
    controlHosts: reader.take(table.controlHosts, []),
    maxControlConnections: reader.take(table.maxControlConnections, 0),
    controlAdmins: reader.take(table.controlAdmins, []),
    controlViewers: reader.take(table.controlViewers, []),
    controlAuditLogPath: reader.take(table.controlAuditLogPath, ''),
    storeKeyFile: reader.take(table.storeKeyFile, ''),
    kubeconfig: reader.take(table.kubeconfig, ''),
    context: reader.take(table.context, ''),
    installCrds: reader.take(table.installCrds, true),
    secretNamespaces: reader.take(table.secretNamespaces, namespaces),
    allowLocalServers: reader.take(table.allowLocalServers, []),
  }
}

/** Errors in combinations of settings. */
export function checkObjects(config: ObjectsConfig, reader: SettingsReader): void {
  const { source, configDir, kubeconfig, controlAuditLogPath } = config
  const table = OBJECTS_TABLE
  if (source === 'files' && configDir === '' && !isWrong(reader, table.configDir)) {
    const message = 'no directory of UpstreamCluster files is given'
    addProblem(reader, table.configDir, message, `give ${namesOf(table.configDir)}`)
  }
  const meaningless = `has no meaning with --source ${source}`
  if (source !== 'files' && configDir !== '') {
    addProblem(reader, table.configDir, meaningless, 'remove it, or write --source files')
  }
  if (source !== 'embedded' && controlAuditLogPath !== '') {
    addProblem(reader, table.controlAuditLogPath, meaningless, 'remove it, or write --source embedded')
  }
  if (source !== 'kubernetes' && kubeconfig !== '') {
    addProblem(reader, table.kubeconfig, meaningless, 'remove it, or write --source kubernetes')
  }
}
