// `portcullis control`: credentials for the embedded API server, a backup of its store, and key rotation.

import { stringify } from 'yaml'
import { type CommandOutput, reportUserErrors } from '../../cli/command/output.ts'
import { controlPaths } from '../../gateway/io/listener/control-paths.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { parseDuration } from '../../kit/core/text/duration.ts'
import type { ResourceKind } from '../../kube/api/resource-kind.ts'
import {
  controlKubeconfig,
  issueControlCertificate,
  readControlServer,
  readControlTokenKey,
} from '../../pki/io/control-pki.ts'
import { issueControlToken } from '../../pki/io/control-tokens.ts'
import type { KeyPair } from '../../pki/io/pki.ts'
import { readTextFile } from '../../pki/io/pki-files.ts'
import { createWebhookTokens } from '../../pki/io/webhook-tokens.ts'
import { backupStore } from '../io/store/backup.ts'
import { keyId, readExistingKey } from '../io/store/key.ts'
import { rotateStoreKey } from '../io/store/rotation.ts'

export interface ControlKubeconfigOptions extends CommandOutput {
  /** `--data-dir` of the gateway. */
  readonly dataDir: string
  readonly user: string
  readonly groups: readonly string[]
  /** Default: from the administrator's kubeconfig in the data directory, else `https://localhost:9443`. */
  readonly server?: string
  /** A Go duration; if set, issues a token instead of a client certificate. */
  readonly tokenTtl?: string
  /** Validity of the client certificate, days. Default 365. */
  readonly days?: number
  readonly now: () => number
}

/** Prints a kubeconfig; returns the exit code. */
export function printControlKubeconfig(options: ControlKubeconfigOptions): number {
  return reportUserErrors(options.err, () => {
    const { pki, caCertificate } = controlPaths(options.dataDir)
    const { user, groups } = options
    const server = options.server ?? (readControlServer(pki) || 'https://localhost:9443')
    const credential =
      options.tokenTtl === undefined ? certificate(pki, options) : token(pki, options, options.tokenTtl)
    const caPem = readTextFile(caCertificate)
    options.out(controlKubeconfig({ server, caPem, user, credential }))
    if (groups.length === 0)
      options.err(
        `note: ${user} is in no group; give --group, or name the user to the gateway: --control-admin user:${user}\n`,
      )
    return 0
  })
}

function certificate(dir: string, { user, groups, days }: ControlKubeconfigOptions): KeyPair {
  return issueControlCertificate(dir, { user, groups, ...(days !== undefined && { days }) })
}

function token(dir: string, { user, groups, now }: ControlKubeconfigOptions, ttl: string): string {
  const ttlMs = parseDuration(ttl)
  if (ttlMs === undefined) throw new UserError(`--token-ttl "${ttl}" is not a duration`, 'write for example 12h or 30m')
  return issueControlToken(readControlTokenKey(dir), { user, groups, ttlSeconds: ttlMs / 1000, nowMs: now() })
}

/** Copies the store of a gateway that may be running; returns the exit code. */
export function backupControlStore(
  options: CommandOutput & { readonly dataDir: string; readonly file: string },
): number {
  return reportUserErrors(options.err, () => {
    const { store, storeKey } = controlPaths(options.dataDir)
    backupStore(store, options.file)
    const key = readExistingKey(storeKey)
    const which = key === undefined ? storeKey : `${storeKey}, now ${keyId(key)}`
    options.out(`${options.file} is complete; keep the key that encrypts it (${which}) elsewhere\n`)
    return 0
  })
}

export interface RotateKeyOptions extends CommandOutput {
  /** `--data-dir` of the gateway. */
  readonly dataDir: string
  /** The gateway's `--store-key-file`. Default: the one in the data directory. */
  readonly storeKeyFile?: string | undefined
  /** File of the new key; created if missing. Default: replaces the old one, which is kept next to it. */
  readonly newKeyFile?: string | undefined
}

/** Returns the exit code. */
export function rotateKey({ dataDir, storeKeyFile, newKeyFile, out, err }: RotateKeyOptions): number {
  const { store: file, storeKey } = controlPaths(dataDir)
  const keyFile = storeKeyFile ?? storeKey
  return reportUserErrors(err, () => {
    const { bodies, keyId, oldKeyFile, leftover } = rotateStoreKey({ file, keyFile, newKeyFile })
    const where = newKeyFile ?? keyFile
    out(`${bodies} objects, old versions included, are encrypted with key ${keyId} in ${where}\n`)
    if (newKeyFile !== undefined) out(`start the gateway with --store-key-file ${newKeyFile}\n`)
    out(`backups made so far need ${oldKeyFile}: keep it with them, not here\n`)
    if (leftover !== '')
      err(`note: free pages of the file may still hold bytes encrypted with the old key: ${leftover}\n`)
    return 0
  })
}

// `portcullis control webhook`: the configuration that makes the API server of --source kubernetes validate objects before it stores
// them, with the CA and the token of a gateway. deploy/webhook/validating-webhook.yaml is the same without them.

interface ControlWebhookOptions extends CommandOutput {
  /** The kinds that are checked. */
  readonly kinds: readonly ResourceKind[]
  /** --data-dir of the gateway. */
  readonly dataDir: string
  /** https://HOST:PORT of --control-listen. */
  readonly url?: string
  /** NAMESPACE/NAME, instead of `url`. */
  readonly service?: string
  /** Port of the Service. */
  readonly port: number
}

/** Same as in webhooks/webhook.ts: siblings don't import each other. */
const PATH = '/admission'

/** Prints it; returns the exit code. */
export function printControlWebhook(options: ControlWebhookOptions): number {
  return reportUserErrors(options.err, () => {
    const { pki, caCertificate } = controlPaths(options.dataDir)
    const token = createWebhookTokens(readControlTokenKey(pki)).tokenOf(PATH)
    const caBundle = Buffer.from(readTextFile(caCertificate)).toString('base64')
    const clientConfig = { ...whereOf(options, `${PATH}/${token}`), caBundle }
    options.out(
      stringify(webhookConfiguration(clientConfig, options.kinds), { lineWidth: 0, aliasDuplicateObjects: false }),
    )
    return 0
  })
}

/** @param clientConfig of admissionregistration.k8s.io/v1, for all webhooks of the configuration */
export function webhookConfiguration(clientConfig: JsonObject, kinds: readonly ResourceKind[]): JsonObject {
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name: 'portcullis' },
    webhooks: kinds.map((kind) => ({ ...webhookOf(kind), clientConfig })),
  }
}

function webhookOf({ group, version, plural, namespaced }: ResourceKind): JsonObject {
  return {
    name: `${plural}.${group}`,
    admissionReviewVersions: ['v1'],
    sideEffects: 'None',
    // The gateway validates every object again when it reads it, so an unavailable gateway need not block writes.
    failurePolicy: 'Ignore',
    matchPolicy: 'Equivalent',
    timeoutSeconds: 5,
    rules: [
      {
        apiGroups: [group],
        apiVersions: [version],
        operations: ['CREATE', 'UPDATE'],
        resources: [plural],
        scope: namespaced ? 'Namespaced' : 'Cluster',
      },
    ],
  }
}

function whereOf({ url, service, port }: ControlWebhookOptions, path: string): JsonObject {
  if ((url === undefined) === (service === undefined)) {
    throw new UserError('the address at which the API server reaches the gateway is missing', 'give --url or --service')
  }
  if (service === undefined) {
    if (url === undefined || !/^https:\/\/[^/]+\/?$/.test(url)) {
      throw new UserError(`--url ${url} is not an address`, 'write https://HOST:PORT of --control-listen')
    }
    return { url: `${url.replace(/\/$/, '')}${path}` }
  }
  const [namespace = '', name = '', more] = service.split('/')
  if (namespace === '' || name === '' || more !== undefined) {
    throw new UserError(`--service ${service} is not a Service`, 'write NAMESPACE/NAME')
  }
  return { service: { namespace, name, port, path } }
}
