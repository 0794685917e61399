// `portcullis kubeconfig`: prints a kubeconfig for a cluster behind the gateway, or for all of them.

import { stringify } from 'yaml'
import type { CompiledCluster } from '../gateway/core/cluster/compiled-cluster.ts'
import { exposedFiles } from '../gateway/io/secrets/exposed-secrets.ts'
import { UserError } from '../kit/api/validation/field-errors.ts'
import { canonicalIp } from '../kit/api/validation/ip-address.ts'
import { nearestName } from '../kit/api/validation/nearest-name.ts'
import { toBase64 } from '../kit/core/text/base64.ts'
import { readTextFile } from '../pki/io/pki-files.ts'
import { mayNotRead } from './client/control-plane.ts'
import { readServedClusters, type ServedClusters, type ServedClustersOptions } from './client/served-clusters.ts'
import { reportUserErrors } from './command/output.ts'
import { askReachableClusters } from './io/reachable-clusters.ts'

export interface KubeconfigOptions extends ServedClustersOptions {
  /** metadata.name of the UpstreamCluster; undefined = all of them, a context each. */
  cluster?: string
  /** `https://HOST[:PORT]`: how clients reach the gateway. Default: the cluster's own host name, port 8443. */
  server?: string
  /** Address the cluster by the path `/clusters/NAME`. Default: if neither host, address nor port of `server` selects it. */
  path?: boolean
  userCertFile?: string
  userKeyFile?: string
  tokenFile?: string
  /** The user of the kubeconfig, if it has no credential: a credential plugin. */
  execUser?: Readonly<Record<string, unknown>>
  /** The ID token of that plugin, for asking the gateway which clusters there are for its user. @throws {UserError} */
  ownToken?: () => Promise<string>
  /** PEM of the CA that signed the gateway's serving certificate. Default: the machine's trusted CAs. */
  caFile?: string
}

const DEFAULT_PORT = 8443

/** The user of all contexts of `--all`. */
const SHARED_USER = 'portcullis'

/** Prints the kubeconfig. Resolves with the exit code. */
export function kubeconfig(options: KubeconfigOptions): Promise<number> {
  return reportUserErrors(options.err, async () => {
    const targets = await targetsOf(options)
    if (targets === undefined) return 1
    const { cluster: name } = options
    const user = name ?? SHARED_USER
    const caData = options.caFile === undefined ? undefined : toBase64(readTextFile(options.caFile))
    const document = {
      apiVersion: 'v1',
      kind: 'Config',
      // With all clusters, the user of the kubeconfig chooses one: no command goes to the first by accident.
      ...(name !== undefined && { 'current-context': name }),
      clusters: targets.map(({ name: cluster, server }) => ({
        name: cluster,
        cluster: { server, ...(caData !== undefined && { 'certificate-authority-data': caData }) },
      })),
      users: [{ name: user, user: credentials(options) }],
      contexts: targets.map(({ name: cluster }) => ({ name: cluster, context: { cluster, user } })),
    }
    const found = new Set(targets.flatMap(({ warnings: own }) => own))
    for (const warning of [...exposedCredentials(options), ...found]) options.err(`warning: ${warning}\n`)
    options.out(stringify(document, { lineWidth: 0 }))
    return 0
  })
}

/** A cluster of the kubeconfig. */
interface Target {
  readonly name: string
  readonly server: string
  readonly warnings: readonly string[]
}

/** undefined = the clusters can't be read; the error was printed. @throws {UserError} */
async function targetsOf(options: KubeconfigOptions): Promise<readonly Target[] | undefined> {
  let refused = false
  const asksGateway = options.cluster === undefined && options.server !== undefined && hasCredential(options)
  const instead = (error: unknown): boolean => {
    refused = asksGateway && mayNotRead(error, options)
    return refused
  }
  const served = await servedBy({ ...options, instead })
  if (refused) return await reachableTargets(options)
  if (served === undefined) return undefined
  const clusters = options.cluster === undefined ? allOf(served) : [findCluster(options.cluster, served)]
  return clusters.map((cluster) => ({
    name: cluster.name,
    server: serverUrl(options, cluster),
    warnings: warnings(options, cluster.name, served),
  }))
}

/** The clusters that accept a credential, for a user who may not read UpstreamClusters. */
async function reachableTargets(options: KubeconfigOptions): Promise<readonly Target[]> {
  const { server = '', caFile, ownToken, userCertFile, userKeyFile, tokenFile, err } = options
  const { base } = partsOf(server)
  // Checked before a login.
  credentials(options)
  const token = tokenFile === undefined ? await ownToken?.() : readTextFile(tokenFile).trim()
  const { names, isIncomplete } = await askReachableClusters(
    base,
    caFile === undefined ? undefined : readTextFile(caFile),
    {
      ...(token !== undefined && { token }),
      ...(userCertFile !== undefined &&
        userKeyFile !== undefined && {
          certificate: { cert: readTextFile(userCertFile), key: readTextFile(userKeyFile) },
        }),
    },
  )
  const missing = isIncomplete ? '; clusters that verify logins themselves are not included' : ''
  err(
    `note: you may not read UpstreamClusters, so these are the clusters that accept your login, as ${base} says${missing}\n`,
  )
  return names.map((name) => ({ name, server: `${base}/clusters/${name}`, warnings: [] }))
}

function hasCredential({ ownToken, userCertFile, tokenFile }: KubeconfigOptions): boolean {
  return ownToken !== undefined || userCertFile !== undefined || tokenFile !== undefined
}

/** undefined = the clusters can't be read; the error was printed, if nothing is done instead. @throws {UserError} if there are none */
async function servedBy(options: ServedClustersOptions & KubeconfigOptions): Promise<ServedClusters | undefined> {
  const served = await readServedClusters(options)
  if (served === undefined) return undefined
  const { clusters, problems, where, fixOfNone } = served
  // What is wrong with a cluster matters if all are wanted: it is missing then.
  const shown = options.cluster === undefined ? problems : problems.filter((one) => one.startsWith('warning'))
  for (const problem of shown) options.err(`${problem}\n`)
  if (clusters.size === 0) throw new UserError(`no UpstreamCluster could be loaded from ${where}`, fixOfNone)
  return served
}

function allOf({ clusters }: ServedClusters): readonly CompiledCluster[] {
  return [...clusters.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
}

function findCluster(name: string, { clusters, where }: ServedClusters): CompiledCluster {
  const found = clusters.get(name)
  if (found !== undefined) return found
  const names = [...clusters.keys()].sort()
  const meant = nearestName(name, names)
  const fix =
    meant === '' ? `known clusters: ${names.join(', ')}` : `did you mean ${meant}? Known clusters: ${names.join(', ')}`
  throw new UserError(`no cluster ${JSON.stringify(name)} in ${where}`, fix)
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

function exposedCredentials({ userKeyFile, tokenFile }: KubeconfigOptions): string[] {
  const secrets = [userKeyFile, tokenFile].filter((file) => file !== undefined)
  return exposedFiles(secrets).map((file) => {
    return `${file} holds a credential, and others on this machine may read it; chmod 600 ${file}`
  })
}

function warnings(
  options: KubeconfigOptions,
  cluster: string,
  { clusters, withCertificate }: ServedClusters,
): string[] {
  const { server, path } = options
  if (server === undefined) return []
  const { host, port } = partsOf(server)
  const claimer = [...clusters.values()].find((one) => isAddressOf(one, host, port))
  if (claimer === undefined || !withCertificate.has(claimer.name)) return []
  if (claimer.name === cluster && path !== true) return []
  const whose = `${host}:${port} is in spec.addresses of ${claimer.name}`
  return [`${whose}: it shows the certificate of ${claimer.name} and not the gateway's own, with a path, too`]
}

/** The first of its serverNames that is not a wildcard, or else its name. */
function ownHost(cluster: CompiledCluster): string {
  return cluster.hosts.find((host) => host !== cluster.name && !host.startsWith('*.')) ?? cluster.name
}

function credentials(options: KubeconfigOptions): Readonly<Record<string, unknown>> {
  const { userCertFile, userKeyFile, tokenFile, execUser } = options
  if (execUser !== undefined) {
    if (userCertFile === undefined && userKeyFile === undefined && tokenFile === undefined) return execUser
    throw new UserError(
      'a login and a credential are both given',
      'leave out --login-issuer, or --user-cert and --token-file',
    )
  }
  if ((userCertFile === undefined) !== (userKeyFile === undefined)) {
    throw new UserError('a certificate and its key go together', 'give both --user-cert and --user-key')
  }
  return {
    ...(userCertFile === undefined ? {} : { 'client-certificate-data': toBase64(readTextFile(userCertFile)) }),
    ...(userKeyFile === undefined ? {} : { 'client-key-data': toBase64(readTextFile(userKeyFile)) }),
    ...(tokenFile === undefined ? {} : { token: readTextFile(tokenFile).trim() }),
  }
}
