// A kubeconfig, or a pod's service account. @kubernetes/client-node reads it; this file adds what it lacks: `tokenFile`, plugins next to the
// kubeconfig, KUBERNETES_EXEC_INFO, and error messages that do not quote the file's content.

import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { homedir } from 'node:os'
import { delimiter, dirname, isAbsolute, join, resolve } from 'node:path'
import type * as ClientNode from '@kubernetes/client-node'
import type { KubeConfig, User } from '@kubernetes/client-node'
import { parse } from 'yaml'
import { isRecord } from '../../kit/api/json/object-shape.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { PROGRAM_FILES } from '../../kit/io/program/build.ts'

const load = createRequire(import.meta.url)

/** Loaded on demand: it takes a second, and is unnecessary if the gateway's objects live elsewhere. */
function newKubeConfig(): KubeConfig {
  const { KubeConfig: Loaded } = load(PROGRAM_FILES.clientNode) as typeof ClientNode
  return new Loaded()
}

export interface KubeConfigOptions {
  /** '' = like kubectl: $KUBECONFIG, ~/.kube/config, or the pod's service account. */
  readonly kubeconfigFile: string
  /** Default: the kubeconfig's current one. */
  readonly context?: string
}

/** The files it is read from; none = the pod's service account. */
export function kubeConfigFiles({ kubeconfigFile }: KubeConfigOptions): readonly string[] {
  return kubeconfigFile !== '' ? [resolve(kubeconfigFile)] : defaultFiles()
}

/** @throws {UserError} if there is none, or it is unusable */
export function loadKubeConfig({ kubeconfigFile, context = '' }: KubeConfigOptions): KubeConfig {
  const files = kubeConfigFiles({ kubeconfigFile })
  const config = newKubeConfig()
  if (files.length === 0) loadPod(config)
  for (const [index, file] of files.entries()) {
    if (index === 0) loadFile(config, file)
    else {
      const next = newKubeConfig()
      loadFile(next, file)
      mergeMissing(config, next)
    }
  }
  if (context !== '') config.setCurrentContext(context)
  checkContext(config, files.join(delimiter))
  return config
}

function defaultFiles(): string[] {
  const named = (process.env['KUBECONFIG'] ?? '').split(delimiter).filter((file) => file !== '')
  // kubectl skips files in the list that do not exist.
  if (named.length > 0) return named.length === 1 ? named : named.filter((file) => existsSync(file))
  const home = join(homedir(), '.kube', 'config')
  return existsSync(home) ? [home] : []
}

function loadPod(config: KubeConfig): void {
  if ((process.env['KUBERNETES_SERVICE_HOST'] ?? '') === '') {
    throw new UserError('there is no kubeconfig', 'name one with --kubeconfig, or run in a pod with a service account')
  }
  config.loadFromCluster()
}

function loadFile(config: KubeConfig, file: string): void {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    const missing = error instanceof Error && 'code' in error && error.code === 'ENOENT'
    throw new UserError(
      `kubeconfig ${file} ${missing ? 'does not exist' : 'cannot be read'}`,
      'name a kubeconfig that exists and can be read',
    )
  }
  const users = rawUsers(text, file)
  try {
    config.loadFromString(text)
  } catch (error) {
    // A YAML parser's message quotes the line, and with it a token; `clusters[0].name is missing` does not.
    const message = error instanceof Error && / is missing$/.test(error.message) ? `: ${error.message}` : ''
    throw new UserError(`kubeconfig ${file} is not valid${message}`, 'write it with: kubectl config')
  }
  config.makePathsAbsolute(dirname(file))
  for (const user of config.users) completeUser(user, users.get(user.name), dirname(file))
}

function rawUsers(text: string, file: string): ReadonlyMap<string, Readonly<Record<string, unknown>>> {
  const users = new Map<string, Readonly<Record<string, unknown>>>()
  let document: unknown
  try {
    document = parse(text, { logLevel: 'error' })
  } catch {
    throw new UserError(`kubeconfig ${file} is not YAML`, 'write it with: kubectl config')
  }
  if (!isRecord(document)) throw new UserError(`kubeconfig ${file} is empty`, 'write it with: kubectl config')
  const list: readonly unknown[] = Array.isArray(document['users']) ? document['users'] : []
  for (const entry of list) {
    if (isRecord(entry) && typeof entry['name'] === 'string' && isRecord(entry['user'])) {
      users.set(entry['name'], entry['user'])
    }
  }
  return users
}

/** Adds what client-node does not read: `tokenFile`, and for plugins the environment and search path that client-go uses. */
function completeUser(user: User, raw: Readonly<Record<string, unknown>> | undefined, dir: string): void {
  const { tokenFile, exec } = raw ?? {}
  if (typeof tokenFile === 'string' && tokenFile !== '') {
    const changed = { authProvider: { name: 'tokenFile', config: { tokenFile: resolve(dir, tokenFile) } } }
    Object.assign(user, changed)
    // client-go: the file takes precedence over an inline token.
    Object.assign(user, { token: undefined })
  }
  if (!isRecord(exec) || typeof exec['command'] !== 'string') return
  const { command, apiVersion, env } = exec
  const info = { kind: 'ExecCredential', apiVersion, spec: { interactive: false } }
  const beside = command.includes('/') && !isAbsolute(command)
  Object.assign(user, {
    exec: {
      ...exec,
      command: beside ? join(dir, command) : command,
      env: [...(Array.isArray(env) ? env : []), { name: 'KUBERNETES_EXEC_INFO', value: JSON.stringify(info) }],
    },
  })
}

/** Merges like kubectl: earlier files win. */
function mergeMissing(config: KubeConfig, next: KubeConfig): void {
  const missing = <T extends { readonly name: string }>(have: readonly T[], more: readonly T[]): T[] =>
    more.filter(({ name }) => !have.some((one) => one.name === name))
  config.clusters = [...config.clusters, ...missing(config.clusters, next.clusters)]
  config.users = [...config.users, ...missing(config.users, next.users)]
  config.contexts = [...config.contexts, ...missing(config.contexts, next.contexts)]
  if ((config.currentContext ?? '') === '') config.currentContext = next.currentContext
}

function checkContext(config: KubeConfig, where: string): void {
  const source = where === '' ? 'the service account of the pod' : `kubeconfig ${where}`
  const current = config.currentContext ?? ''
  const context = config.contexts.find(({ name }) => name === current)
  if (context === undefined) {
    const names = config.contexts.map(({ name }) => name).join(', ')
    const message = current === '' ? 'has no current context' : `has no context ${JSON.stringify(current)}`
    throw new UserError(`${source} ${message}`, names === '' ? 'add a context' : `its contexts are: ${names}`)
  }
  const cluster = config.clusters.find(({ name }) => name === context.cluster)
  if (cluster === undefined) {
    throw new UserError(`${source} has no cluster ${JSON.stringify(context.cluster)}`, 'fix the context')
  }
  if (!/^https:\/\/[^/]/.test(cluster.server) || !URL.canParse(cluster.server)) {
    throw new UserError(
      `${source}: server ${JSON.stringify(cluster.server)} is not an https URL`,
      'credentials are not sent in the clear: write https://HOST:PORT',
    )
  }
  if (context.user !== undefined && !config.users.some(({ name }) => name === context.user)) {
    throw new UserError(`${source} has no user ${JSON.stringify(context.user)}`, 'fix the context')
  }
}
