// `portcullis kubeconfig`: one for a cluster as the gateway serves it.

import { stringify } from 'yaml'
import { UserError } from '../api/field-errors.ts'
import { nearestName } from '../api/nearest-name.ts'
import { base64 } from '../core/base64.ts'
import { compileCluster } from '../core/compile-cluster.ts'
import type { CompiledCluster } from '../core/compiled-cluster.ts'
import { loadDirectory } from '../io/files-source.ts'
import { nodePemChecks } from '../io/pem-checks.ts'
import { readTextFile } from '../io/pki-files.ts'

export interface KubeconfigOptions {
  /** metadata.name of the UpstreamCluster. */
  cluster: string
  configDir: string
  /** `https://HOST[:PORT]`: how clients reach the gateway. Default: the cluster's own host name, port 8443. */
  server?: string
  /** Address the cluster by the path `/clusters/NAME`. Default: when `server` is given and is no host of the cluster. */
  path?: boolean
  userCertFile?: string
  userKeyFile?: string
  tokenFile?: string
  /** PEM of the CA that signed the gateway's serving certificate. Default: what the machine trusts. */
  caFile?: string
  out: (text: string) => void
  err: (text: string) => void
}

const DEFAULT_PORT = 8443

/** Prints the kubeconfig. Resolves with the exit code. */
export async function kubeconfig(options: KubeconfigOptions): Promise<number> {
  try {
    const cluster = await findCluster(options)
    const document = {
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': cluster.name,
      clusters: [{ name: cluster.name, cluster: connection(options, cluster) }],
      users: [{ name: cluster.name, user: credentials(options) }],
      contexts: [{ name: cluster.name, context: { cluster: cluster.name, user: cluster.name } }],
    }
    options.out(stringify(document, { lineWidth: 0 }))
    return 0
  } catch (error) {
    if (!(error instanceof UserError)) throw error
    options.err(`error: ${error.message}; ${error.fix}\n`)
    return 1
  }
}

async function findCluster({ cluster, configDir }: KubeconfigOptions): Promise<CompiledCluster> {
  const { clusters } = await loadDirectory(configDir, nodePemChecks)
  const found = clusters.get(cluster)
  if (found !== undefined) return compileCluster(found)
  const names = [...clusters.keys()].sort()
  if (names.length === 0)
    throw new UserError(`no UpstreamCluster could be loaded from ${configDir}`, `run: portcullis check ${configDir}`)
  const meant = nearestName(cluster, names)
  const fix =
    meant === '' ? `known clusters: ${names.join(', ')}` : `did you mean ${meant}? Known clusters: ${names.join(', ')}`
  throw new UserError(`no cluster ${JSON.stringify(cluster)} in ${configDir}`, fix)
}

function connection(options: KubeconfigOptions, cluster: CompiledCluster): Record<string, string> {
  const server = serverUrl(options, cluster)
  if (options.caFile === undefined) return { server }
  return { server, 'certificate-authority-data': base64(readTextFile(options.caFile)) }
}

/** A host that names the cluster needs no path; any other one does, unless the caller says that address or port decide. */
function serverUrl({ server, path }: KubeconfigOptions, cluster: CompiledCluster): string {
  if (server === undefined) {
    const base = `https://${ownHost(cluster)}:${DEFAULT_PORT}`
    return path === true ? `${base}/clusters/${cluster.name}` : base
  }
  const [, base = '', host = ''] = /^(https:\/\/(\[[^\]/]+\]|[^:/?#@\s]+)(?::\d{1,5})?)\/?$/.exec(server) ?? []
  if (base === '')
    throw new UserError(
      `--server is not https://HOST:PORT: ${server}`,
      'give the address of the gateway, without a path',
    )
  const byHost = cluster.hosts.includes(host.toLowerCase())
  return (path ?? !byHost) ? `${base}/clusters/${cluster.name}` : base
}

/** The first of its serverNames that is no wildcard, or else its name. */
function ownHost(cluster: CompiledCluster): string {
  return cluster.hosts.find((host) => host !== cluster.name && !host.startsWith('*.')) ?? cluster.name
}

function credentials(options: KubeconfigOptions): Record<string, string> {
  const { userCertFile, userKeyFile, tokenFile } = options
  if ((userCertFile === undefined) !== (userKeyFile === undefined)) {
    throw new UserError('a certificate and its key go together', 'give both --user-cert and --user-key')
  }
  return {
    ...(userCertFile === undefined ? {} : { 'client-certificate-data': base64(readTextFile(userCertFile)) }),
    ...(userKeyFile === undefined ? {} : { 'client-key-data': base64(readTextFile(userKeyFile)) }),
    ...(tokenFile === undefined ? {} : { token: readTextFile(tokenFile).trim() }),
  }
}
