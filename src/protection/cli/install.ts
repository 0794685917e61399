// `portcullis protect install`, `uninstall` and `credentials`: makes a worker cluster call the protection webhook.

import { stringify } from 'yaml'
import {
  type ControlPlaneOptions,
  metadataOf,
  readPositiveDuration,
  withControlPlane,
} from '../../cli/client/control-plane.ts'
import { type CommandOutput, reportUserErrors } from '../../cli/command/output.ts'
import { controlPaths } from '../../gateway/io/listener/control-paths.ts'
import { type JsonObject, nameOf } from '../../kit/api/json/json-object.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { isDnsLabel } from '../../kit/api/validation/name-syntax.ts'
import { parseDuration } from '../../kit/core/text/duration.ts'
import { foreignKind, VALIDATING_WEBHOOK_CONFIGURATIONS } from '../../kube/api/kinds/foreign-kinds.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import { StatusError } from '../../kube/api/status.ts'
import { readControlTokenKey } from '../../pki/io/control-pki.ts'
import { readTextFile } from '../../pki/io/pki-files.ts'
import { createWebhookTokens } from '../../pki/io/webhook-tokens.ts'
import { PROBE_ANSWER, PROBE_LABEL } from '../core/quota/review-subject.ts'
import {
  checkCell,
  checkConfigurationName,
  credentialName,
  PROBE_NAME,
  probeConfiguration,
  protectionConfiguration,
  readAddress,
  type WebhookAddress,
} from './install-manifest.ts'

export interface WebhookTarget {
  /** The cell: spec.podProtection.cell of its UpstreamCluster, or that one's name. */
  readonly cluster: string
  readonly url?: string
  /** `NAMESPACE/NAME`. */
  readonly service?: string
  /** Port of the Service. */
  readonly port: number
  /** The gateway's --data-dir, with its CA and the key for tokens. */
  readonly dataDir?: string
  /** Instead of those in `dataDir`. */
  readonly caFile?: string
  readonly tokenFile?: string
}

export interface ProtectInstallOptions extends ControlPlaneOptions, WebhookTarget {
  /** false: kube-apiserver presents a credential (`protect credentials`), and the path has no token. */
  readonly token: boolean
  /** In addition to the namespace of the Service. */
  readonly excludeNamespace: readonly string[]
  readonly name: string
  readonly shadow: boolean
  /** Only print the manifest to `out`. */
  readonly print: boolean
  /** Timeout of the probe: a Go duration. */
  readonly timeout: string
  readonly now: () => number
  readonly pollMs?: number
}

/** The namespace of the eviction that probes the webhook. */
const PROBE_NAMESPACE = 'default'
const NEEDS = 'get, create, update and delete of validatingwebhookconfigurations'

/** Resolves with the exit code. An existing configuration is updated. */
export async function protectInstall(options: ProtectInstallOptions): Promise<number> {
  if (options.print) return printing(options, () => configurationOf(options))
  return withControlPlane({ ...options, needs: NEEDS }, async (client) => {
    const configuration = configurationOf(options)
    const timeoutMs = readPositiveDuration('--timeout', options.timeout, parseDuration)
    const { cluster, shadow, now, pollMs, out } = options
    const probe = { client, address: addressOf(options), timeoutMs, now, ...(pollMs !== undefined && { pollMs }) }
    await withRights(() => probeWebhook(probe))
    out(`the API server of the worker reaches the webhook, which knows cell ${cluster}\n`)
    const done = await withRights(() => putConfiguration(client, configuration))
    const policy = shadow ? 'Ignore' : 'Fail'
    out(`ValidatingWebhookConfiguration ${options.name} is ${done}: failurePolicy ${policy}, ${exclusions(options)}\n`)
    if (shadow) out(`nothing is refused while spec.podProtection.shadow of the UpstreamCluster is true\n`)
    return 0
  })
}

export interface ProtectUninstallOptions extends ControlPlaneOptions {
  readonly name: string
}

/** Resolves with the exit code; 0 also if it didn't exist. */
export function protectUninstall(options: ProtectUninstallOptions): Promise<number> {
  const { name, out } = options
  return withControlPlane({ ...options, needs: NEEDS }, async (client) => {
    try {
      await withRights(() => client.delete(VALIDATING_WEBHOOK_CONFIGURATIONS, { namespace: '', name }))
      out(
        `ValidatingWebhookConfiguration ${name} is deleted: the API server of the worker no longer asks the webhook\n`,
      )
    } catch (error) {
      if (!(error instanceof StatusError) || error.code !== 404) throw error
      out(`there is no ValidatingWebhookConfiguration ${name}\n`)
    }
    return 0
  })
}

export interface ProtectCredentialsOptions extends WebhookTarget, CommandOutput {}

/** Prints the kubeconfig referenced by kube-apiserver's AdmissionConfiguration; returns the exit code. */
export function protectCredentials(options: ProtectCredentialsOptions): number {
  const code = printing(options, () => {
    const { cluster, url, service, port } = options
    checkCell(cluster)
    const name = credentialName(readAddress(url, service, port))
    return { apiVersion: 'v1', kind: 'Config', users: [{ name, user: { token: tokenOf(options) } }] }
  })
  if (code === 0) {
    options.err(
      'note: kubeConfigFile of plugin ValidatingAdmissionWebhook, in the file that kube-apiserver reads when it ',
    )
    options.err('starts: --admission-control-config-file\n')
  }
  return code
}

/** Prints an object as YAML, without contacting a server. */
function printing({ out, err }: CommandOutput, make: () => object): number {
  return reportUserErrors(err, () => {
    out(stringify(make(), { lineWidth: 0 }))
    return 0
  })
}

function configurationOf(options: ProtectInstallOptions): JsonObject {
  checkConfigurationName(options.name)
  const { name, shadow } = options
  return protectionConfiguration({ name, shadow, address: addressOf(options), excludedNamespaces: excluded(options) })
}

function addressOf(options: ProtectInstallOptions): WebhookAddress {
  const { cluster: cell, url, service, port, dataDir, caFile } = options
  checkCell(cell)
  const where = readAddress(url, service, port)
  const file = caFile ?? (dataDir === undefined ? undefined : controlPaths(dataDir).caCertificate)
  if (file === undefined) throw noSource('the CA of the webhook is unknown', '--ca-file FILE')
  return { ...where, cell, caPem: readTextFile(file), token: options.token ? tokenOf(options) : '' }
}

function tokenOf({ cluster, dataDir, tokenFile }: WebhookTarget): string {
  if (tokenFile !== undefined) return checkedToken(tokenFile, readTextFile(tokenFile).trim())
  if (dataDir === undefined) throw noSource('the token of the cell is unknown', '--token-file FILE')
  return createWebhookTokens(readControlTokenKey(controlPaths(dataDir).pki)).tokenOf(cluster)
}

function checkedToken(file: string, token: string): string {
  if (/^[\w.-]+$/.test(token)) return token
  throw new UserError(`${file} holds no token`, 'give a file with the token and nothing else')
}

function noSource(problem: string, file: string): UserError {
  return new UserError(problem, `give --data-dir DIR of the gateway, or ${file}`)
}

/** The webhook must not block the replacement of its own pods. */
function excluded({ excludeNamespace, service }: ProtectInstallOptions): readonly string[] {
  const own = service === undefined ? [] : [service.split('/', 1)[0] ?? '']
  const all = [...new Set([...excludeNamespace, ...own])]
  for (const namespace of all) {
    if (isDnsLabel(namespace)) continue
    const fix = 'a namespace is a DNS label of lower-case letters, digits and "-"'
    throw new UserError(`--exclude-namespace ${JSON.stringify(namespace)} is not a namespace`, fix)
  }
  return all
}

function exclusions(options: ProtectInstallOptions): string {
  return `not for pods in ${excluded(options).join(', ')}`
}

const MAX_ATTEMPTS = 5
const NEEDED_RIGHTS =
  'the user of --kubeconfig needs get, create, update and delete of validatingwebhookconfigurations, and create of pods/eviction'

/** Keeps others' labels and annotations; replaces the webhooks. */
export async function putConfiguration(client: ObjectClient, object: JsonObject): Promise<'created' | 'up to date'> {
  const kind = VALIDATING_WEBHOOK_CONFIGURATIONS
  for (let attempt = 1; ; attempt++) {
    try {
      const before = await client.get(kind, { namespace: '', name: nameOf(object) })
      const metadata = { ...(before['metadata'] as object), ...(object['metadata'] as object) }
      await client.update(kind, { ...object, metadata: { ...metadata, labels: labelsOf(before, object) } })
      return 'up to date'
    } catch (error) {
      if (!(error instanceof StatusError) || attempt === MAX_ATTEMPTS) throw error
      if (error.code === 409) continue
      if (error.code !== 404) throw error
    }
    try {
      await client.create(kind, object)
      return 'created'
    } catch (error) {
      if (!(error instanceof StatusError) || error.code !== 409) throw error
    }
  }
}

function labelsOf(before: JsonObject, object: JsonObject): Readonly<Record<string, string>> {
  return { ...metadataOf(before).labels, ...metadataOf(object).labels }
}

/** withControlPlane's message for a 403 is about other objects. */
export async function withRights<T>(action: () => Promise<T>): Promise<T> {
  try {
    return await action()
  } catch (error) {
    if (!(error instanceof StatusError) || error.code !== 403) throw error
    throw new UserError(`the API server of the worker refuses: ${error.message}`, NEEDED_RIGHTS)
  }
}

interface ProbeDeps {
  readonly client: ObjectClient
  readonly address: WebhookAddress
  readonly timeoutMs: number
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Between two attempts. Default 250 ms. */
  readonly pollMs?: number
}

/**
 * Checks whether the kube-apiserver of a worker cluster reaches the protection webhook: a temporary configuration matches one special
 * eviction, a dry run for a pod that doesn't exist. Done first, because an unreachable webhook would block every deletion. (A dry-run
 * eviction is reviewed before the pod is looked up: kubernetes/pkg/registry/core/pod/storage/eviction.go.) Resolves once it does.
 * @throws {UserError} with the last problem on timeout
 */
async function probeWebhook({ client, address, timeoutMs, now, pollMs = 250 }: ProbeDeps): Promise<void> {
  const deadlineMs = now() + timeoutMs
  const id = `portcullis-probe-${now().toString(36)}`
  const configuration = probeConfiguration(address, id)
  await client.create(VALIDATING_WEBHOOK_CONFIGURATIONS, configuration)
  try {
    for (;;) {
      const trouble = await evict(client, id)
      if (trouble === '') return
      if (now() >= deadlineMs) throw unreachable(trouble)
      await new Promise((resolve) => setTimeout(resolve, pollMs))
    }
  } finally {
    await client
      .delete(VALIDATING_WEBHOOK_CONFIGURATIONS, { namespace: '', name: nameOf(configuration) })
      .catch(ignoreMissing)
  }
}

/** The problem; '' if the webhook answered as expected. @throws if the probe itself is not allowed */
async function evict(client: ObjectClient, name: string): Promise<string> {
  const plural = `pods/${name}/eviction`
  const kind = foreignKind({ group: '', version: 'v1', kind: 'Eviction', plural, namespaced: true })
  try {
    await client.create(kind, {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { namespace: PROBE_NAMESPACE, name, labels: { [PROBE_LABEL]: name } },
      deleteOptions: { dryRun: ['All'] },
    })
  } catch (error) {
    if (!(error instanceof StatusError)) throw error
    const said = error.message
    if (said.includes(`"${PROBE_NAME}" denied the request: ${PROBE_ANSWER}`)) return ''
    if (said.includes('denied the request') || said.includes('failed calling webhook')) return withoutToken(said)
    // The API server doesn't know the configuration yet.
    if (error.code === 404) return 'the API server has not called the webhook'
    throw error
  }
  return 'the API server has not called the webhook'
}

/** The message of a failed call contains its URL. */
function withoutToken(text: string): string {
  return text.replace(/[0-9a-f]{64}/g, '...').replace(/eyJ[\w-]+\.[\w-]+\.[\w-]+/g, '...')
}

function unreachable(trouble: string): UserError {
  const fix = 'nothing was changed; fix it and try again, or see what would be applied: --print'
  return new UserError(`the webhook does not answer the API server of the worker: ${trouble}`, fix)
}

function ignoreMissing(error: unknown): void {
  if (!(error instanceof StatusError && error.code === 404)) throw error
}
