// Settings of the objects: where UpstreamClusters and other objects are stored, and who may edit them in the embedded API server.

import { OWN_NAMESPACE } from '../../kube/api/own-names.ts'
import { addProblem, isWrong, namesOf } from './setting-problems.ts'
import { file, integer, list, optional, settings, text, toggle, type ValuesOf, withDefault } from './setting-rows.ts'
import {
  oneOf,
  parseAllowedServers,
  parseNamespaces,
  parseOneAddress,
  parseSubjects,
  parseTexts,
} from './setting-values.ts'
import type { SettingsReader } from './settings-reader.ts'

const SOURCES = ['embedded', 'files', 'kubernetes'] as const
export type SourceKind = (typeof SOURCES)[number]

export const OBJECTS = settings({
  source: optional(
    '<kind>',
    oneOf(SOURCES),
    "where objects live: embedded (the gateway's own API server), files (a directory, watched) or kubernetes (CRDs of a " +
      'cluster); default: files with --config-dir, otherwise embedded',
  ),
  /** '' unless the source is files. */
  configDir: text('<dir>', '', 'directory of UpstreamCluster files, for --source files'),
  /** Port of the embedded API server, or of the webhook that validates a cluster's CRDs. */
  controlListen: withDefault(
    '<host:port>',
    '0.0.0.0:9443',
    parseOneAddress,
    { host: '', port: 0 },
    'address of the embedded API server, and of the webhook for CRDs; TLS with client certificates or tokens',
  ),
  /** Names and addresses in the serving certificate of `controlListen`, in addition to this machine's. */
  controlHosts: list(
    '<host>',
    '',
    parseTexts,
    'name or address by which the embedded API server is reached, for its certificate; may be repeated',
    { setting: 'controlHost' },
  ),
  /** Connections to `controlListen` and to the pod protection webhook together. */
  maxControlConnections: integer(
    '512',
    16,
    1_000_000,
    'connections to --control-listen and --protection-listen together, at most a quarter of them without a valid credential; beyond that, the user or address with the most loses one',
  ),
  /** `user:NAME` or `group:NAME`. */
  controlAdmins: list(
    '<subject>',
    '',
    parseSubjects,
    'user:NAME or group:NAME that may edit objects, in addition to group:portcullis:admins; may be repeated',
    { setting: 'controlAdmin' },
  ),
  controlViewers: list(
    '<subject>',
    '',
    parseSubjects,
    'user:NAME or group:NAME that may read objects except Secrets, in addition to group:portcullis:viewers; may be repeated',
    { setting: 'controlViewer' },
  ),
  /** `user:NAME` or `group:NAME`. */
  accessRequesters: list(
    '<subject>',
    '',
    parseSubjects,
    'user:NAME or group:NAME that may request AccessGrants, in addition to group:portcullis:access-requesters; may be repeated',
    { setting: 'accessRequester' },
  ),
  accessApprovers: list(
    '<subject>',
    '',
    parseSubjects,
    'user:NAME or group:NAME that may approve AccessGrants of others, in addition to group:portcullis:access-approvers; may be repeated',
    { setting: 'accessApprover' },
  ),
  /** Audit log of requests to the embedded API server. '' = like `auditLogPath`, '-' = stdout. */
  controlAuditLogPath: file(
    'file for audit events of requests to the embedded API server; - is stdout; default: as --audit-log-path',
  ),
  /** Key that encrypts Secrets at rest; '' = one in dataDir. */
  storeKeyFile: file('key that encrypts Secrets in the store, 32 bytes; default: one created in --data-dir'),
  /** Kubeconfig of the cluster whose CRDs are the source; '' = this pod's service account. */
  kubeconfig: file('cluster that holds the objects, for --source kubernetes; default: the one the gateway runs in'),
  context: text('<name>', '', 'context in --kubeconfig; default: its current one'),
  installCrds: toggle(
    true,
    'whether --source kubernetes creates and updates the CustomResourceDefinitions; otherwise they must exist',
  ),
  /** Namespaces whose Secrets are watched, and released to all UpstreamClusters unless annotated. */
  secretNamespaces: list(
    '<namespace>',
    '',
    parseNamespaces,
    'namespace whose Secrets are watched, and need no annotation until the next minor version; default: portcullis-system, and ' +
      'default in the embedded API server; may be repeated',
    { setting: 'secretNamespace' },
  ),
  /** Servers of UpstreamClusters that may be on this machine. */
  allowLocalServers: list(
    '<host[:port]>',
    '',
    parseAllowedServers,
    'address or range, with or without a port, that servers of UpstreamClusters may have even if it is loopback, link-local or a metadata ' +
      'service; ports of the gateway itself must be named; default: none; may be repeated',
  ),
})

export interface ObjectsConfig extends ValuesOf<typeof OBJECTS> {
  readonly source: SourceKind
}

export function readObjects(reader: SettingsReader): ObjectsConfig {
  const values = reader.read(OBJECTS)
  const { source = values.configDir === '' ? 'embedded' : 'files' } = values
  // In a cluster, `default` may hold Secrets of others; in the embedded API server it does not.
  const namespaces = source === 'embedded' ? [OWN_NAMESPACE, 'default'] : [OWN_NAMESPACE]
  return {
    ...values,
    source,
    secretNamespaces: reader.isGiven(OBJECTS.secretNamespaces) ? values.secretNamespaces : namespaces,
  }
}

/** Errors in combinations of settings. */
export function checkObjects(config: ObjectsConfig, reader: SettingsReader): void {
  const { source, configDir, kubeconfig, controlAuditLogPath } = config
  const table = OBJECTS
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
