// `portcullis kubeconfig`: prints a kubeconfig for a cluster behind the gateway.

import { stringify } from 'yaml'
import type { CompiledCluster } from '../gateway/core/cluster/compiled-cluster.ts'
import { exposedFiles } from '../gateway/io/secrets/exposed-secrets.ts'
import { UserError } from '../kit/api/validation/field-errors.ts'
import { canonicalIp } from '../kit/api/validation/ip-address.ts'
import { nearestName } from '../kit/api/validation/nearest-name.ts'
import { toBase64 } from '../kit/core/text/base64.ts'
import { readTextFile } from '../pki/io/pki-files.ts'
import { readServedClusters, type ServedClusters, type ServedClustersOptions } from './client/served-clusters.ts'
import { reportUserErrors } from './command/output.ts'

export interface KubeconfigOptions extends ServedClustersOptions {
  /** metadata.name of the UpstreamCluster. */
  cluster: string
  /** `https://HOST[:PORT]`: how clients reach the gateway. Default: the cluster's own host name, port 8443. */
  server?: string
  /** Address the cluster by the path `/clusters/NAME`. Default: if neither host, address nor port of `server` selects it. */
  path?: boolean
  userCertFile?: string
  userKeyFile?: string
  tokenFile?: string
  /** PEM of the CA that signed the gateway's serving certificate. Default: the machine's trusted CAs. */
  caFile?: string
}

const DEFAULT_PORT = 8443

/** Prints the kubeconfig. Resolves with the exit code. */
export function kubeconfig(options: KubeconfigOptions): Promise<number> {
  return reportUserErrors(options.err, async () => {
    const found = await findCluster(options)
    if (found === undefined) return 1
    const { cluster } = found
    const document = {
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': cluster.name,
      clusters: [{ name: cluster.name, cluster: connection(options, cluster) }],
      users: [{ name: cluster.name, user: credentials(options) }],
      contexts: [{ name: cluster.name, context: { cluster: cluster.name, user: cluster.name } }],
    }
    for (const warning of warnings(options, found.served)) options.err(`warning: ${warning}\n`)
    options.out(stringify(document, { lineWidth: 0 }))
    return 0
  })
}

interface Found {
  readonly cluster: CompiledCluster
  readonly served: ServedClusters
}

/** undefined = the clusters can't be read; the error was printed. */
async function findCluster(options: KubeconfigOptions): Promise<Found | undefined> {
  const { cluster, err } = options
  const served = await readServedClusters(options)
  if (served === undefined) return undefined
  const { clusters, problems, where, fixOfNone } = served
  for (const problem of problems) if (problem.startsWith('warning')) err(`${problem}\n`)
  const found = clusters.get(cluster)
  if (found !== undefined) return { cluster: found, served }
  const names = [...clusters.keys()].sort()
  if (names.length === 0) throw new UserError(`no UpstreamCluster could be loaded from ${where}`, fixOfNone)
  const meant = nearestName(cluster, names)
  const fix =
    meant === '' ? `known clusters: ${names.join(', ')}` : `did you mean ${meant}? Known clusters: ${names.join(', ')}`
  throw new UserError(`no cluster ${JSON.stringify(cluster)} in ${where}`, fix)
}

function connection(options: KubeconfigOptions, cluster: CompiledCluster): Record<string, string> {
  const server = serverUrl(options, cluster)
  if (options.caFile === undefined) return { server }
  return { server, 'certificate-authority-data': toBase64(readTextFile(options.caFile)) }
}

/** `https://HOST[:PORT]` in parts, the host without brackets. @throws {UserError} */
function partsOf(server: string): { readonly base: string; readonly host: string; readonly port: number } {
  const [, base = '', host = '', port = '443'] =
    /^(https:\/\/(\[[^\]/]+\]|[^:/?#@\s]+)(?::(\d{1,5}))?)\/?$/.exec(server) ?? []
  if (base === '')
    throw new UserError(
      `--server is not https://HOST:PORT: ${server}`,
      'give the address of the gateway, without a path',
    )
  return { base, host: host.replace(/^\[|\]$/g, ''), port: Number(port) }
}

/**
 * A server that selects the cluster needs no path: a host that names it, or an address or port in `spec.addresses`. Any other needs one,
 * unless the caller decides otherwise. An address that selects the cluster shows the cluster's certificate, also in path form.
 */
function serverUrl({ server, path }: KubeconfigOptions, cluster: CompiledCluster): string {
  if (server === undefined) {
    const base = `https://${ownHost(cluster)}:${DEFAULT_PORT}`
    return path === true ? `${base}/clusters/${cluster.name}` : base
  }
  const { base, host, port } = partsOf(server)
  const chosen = isAddressOf(cluster, host, port) || isHostOf(cluster, host)
  return (path ?? !chosen) ? `${base}/clusters/${cluster.name}` : base
}

function isHostOf({ hosts }: CompiledCluster, host: string): boolean {
  const name = host.toLowerCase()
  return hosts.includes(name) || hosts.includes(name.replace(/^[^.]+/, '*'))
}

function isAddressOf({ ips, ports }: CompiledCluster, host: string, port: number): boolean {
  const ip = canonicalIp(host)
  return (ip !== undefined && ips.some((own) => canonicalIp(own) === ip)) || ports.includes(port)
}

function warnings(options: KubeconfigOptions, { clusters, withCertificate }: ServedClusters): string[] {
  const { cluster, server, path, userKeyFile, tokenFile } = options
  const secrets = [userKeyFile, tokenFile].filter((file) => file !== undefined)
  const found = exposedFiles(secrets).map((file) => {
    return `${file} holds a credential, and others on this machine may read it; chmod 600 ${file}`
  })
  if (server === undefined) return found
  const { host, port } = partsOf(server)
  const claimer = [...clusters.values()].find((one) => isAddressOf(one, host, port))
  if (claimer === undefined || !withCertificate.has(claimer.name)) return found
  if (claimer.name === cluster && path !== true) return found
  const whose = `${host}:${port} is in spec.addresses of ${claimer.name}`
  return [...found, `${whose}: it shows the certificate of ${claimer.name} and not the gateway's own, with a path, too`]
}

/** The first of its serverNames that is not a wildcard, or else its name. */
function ownHost(cluster: CompiledCluster): string {
  return cluster.hosts.find((host) => host !== cluster.name && !host.startsWith('*.')) ?? cluster.name
}

function credentials(options: KubeconfigOptions): Record<string, string> {
  const { userCertFile, userKeyFile, tokenFile } = options
  if ((userCertFile === undefined) !== (userKeyFile === undefined)) {
    throw new UserError('a certificate and its key go together', 'give both --user-cert and --user-key')
  }
  return {
    ...(userCertFile === undefined ? {} : { 'client-certificate-data': toBase64(readTextFile(userCertFile)) }),
    ...(userKeyFile === undefined ? {} : { 'client-key-data': toBase64(readTextFile(userKeyFile)) }),
    ...(tokenFile === undefined ? {} : { token: readTextFile(tokenFile).trim() }),
  }
}
