// The ValidatingWebhookConfiguration that makes a worker cluster call the protection webhook.

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { isDnsLabel, isDnsName, isObjectName } from '../../kit/api/validation/name-syntax.ts'
import { toBase64 } from '../../kit/core/text/base64.ts'
import { PROBE_LABEL } from '../core/quota/review-subject.ts'

/** Name of the object. Not Podseidon's, so that both can exist during a migration. */
export const CONFIGURATION_NAME = 'protection.portcullis.io'
/** Name of the webhook in it: Podseidon's, because messages and keys of audit annotations begin with it. */
const WEBHOOK_NAME = 'podseidon.kubewharf.io'
export const PROBE_NAME = 'probe.protection.portcullis.io'
const NAMESPACE_NAME_LABEL = 'kubernetes.io/metadata.name'
const API_VERSION = 'admissionregistration.k8s.io/v1'
/** kube-apiserver's default, and Podseidon's. */
const TIMEOUT_SECONDS = 10
/** A webhook with failurePolicy Ignore must not delay requests for long. */
const SHADOW_TIMEOUT_SECONDS = 3

/** How the cell's kube-apiservers reach the webhook. */
export interface WebhookAddress {
  /** `https://HOST:PORT`, without a path. */
  readonly url?: string
  readonly service?: { readonly namespace: string; readonly name: string; readonly port: number }
  /** PEM. */
  readonly caPem: string
  readonly cell: string
  /** '' = kube-apiserver presents its own credential. */
  readonly token: string
}

interface ConfigurationOptions {
  readonly name: string
  readonly address: WebhookAddress
  readonly excludedNamespaces: readonly string[]
  /** Whether deletions pass while the webhook is unavailable. */
  readonly shadow: boolean
}

/** The address of the webhook from --url and --service. @throws {UserError} */
export function readAddress(
  url: string | undefined,
  service: string | undefined,
  port: number,
): Pick<WebhookAddress, 'url' | 'service'> {
  if ((url === undefined) === (service === undefined)) {
    const problem = url === undefined ? 'no address of the webhook is given' : 'both --url and --service are given'
    throw new UserError(problem, 'give --url https://HOST:PORT or --service NAMESPACE/NAME')
  }
  if (url !== undefined) return { url: checkedUrl(url) }
  const [namespace = '', name = '', ...more] = (service ?? '').split('/')
  if (more.length > 0 || !isDnsLabel(namespace) || !isDnsLabel(name)) {
    throw new UserError(`--service is not NAMESPACE/NAME: ${service}`, 'write for example portcullis-system/portcullis')
  }
  if (!Number.isInteger(port) || port < 1 || port > 65_535) {
    throw new UserError(`--port is not a port: ${port}`, 'give the port of the Service, 1 to 65535')
  }
  return { service: { namespace, name, port } }
}

/** kube-apiserver accepts no user, query or fragment, and requires TLS. */
function checkedUrl(url: string): string {
  const [, base] = /^(https:\/\/(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+)(?::\d{1,5})?)\/?$/.exec(url) ?? []
  if (base !== undefined) return base
  throw new UserError(`--url is not https://HOST:PORT: ${url}`, 'give the address of the webhook, without a path')
}

/** A cell is a segment of the webhook's path. @throws {UserError} */
export function checkCell(cell: string): void {
  if (isObjectName(cell)) return
  const fix =
    'a webhook can ask only for a name of lower-case letters, digits, "-" and "."; set spec.podProtection.cell'
  throw new UserError(`--cluster ${JSON.stringify(cell)} is not a DNS name`, fix)
}

/** @throws {UserError} */
export function checkConfigurationName(name: string): void {
  if (isDnsName(name)) return
  throw new UserError(`--name ${JSON.stringify(name)} is not a DNS name`, `write for example ${CONFIGURATION_NAME}`)
}

export function protectionConfiguration(options: ConfigurationOptions): JsonObject {
  const { name, address, excludedNamespaces, shadow } = options
  return configuration(name, {
    name: WEBHOOK_NAME,
    failurePolicy: shadow ? 'Ignore' : 'Fail',
    timeoutSeconds: shadow ? SHADOW_TIMEOUT_SECONDS : TIMEOUT_SECONDS,
    rules: [rule('DELETE', 'pods'), rule('CREATE', 'pods/eviction')],
    matchConditions: [NOT_TERMINATING, NO_PROBE],
    ...(excludedNamespaces.length > 0 && {
      namespaceSelector: {
        matchExpressions: [{ key: NAMESPACE_NAME_LABEL, operator: 'NotIn', values: [...excludedNamespaces] }],
      },
    }),
    clientConfig: clientConfig(address),
  })
}

/** The kubelet deletes a finished pod again; that is never refused, and must not depend on an unavailable webhook. */
const NOT_TERMINATING: JsonObject = {
  name: 'not-terminating',
  expression: "request.operation != 'DELETE' || !has(oldObject.metadata.deletionTimestamp)",
}
/** A configuration already in force, which may be broken, must not answer the probe. */
const NO_PROBE: JsonObject = {
  name: 'no-probe',
  expression: `request.operation != 'CREATE' || !has(object.metadata.labels) || !('${PROBE_LABEL}' in object.metadata.labels) || !has(object.deleteOptions) || !has(object.deleteOptions.dryRun)`,
}

/** Matches only Evictions with the probe's label, which only this command sends. */
export function probeConfiguration(address: WebhookAddress, id: string): JsonObject {
  return configuration(`${id}.${PROBE_NAME}`, {
    name: PROBE_NAME,
    failurePolicy: 'Fail',
    timeoutSeconds: TIMEOUT_SECONDS,
    rules: [rule('CREATE', 'pods/eviction')],
    objectSelector: { matchLabels: { [PROBE_LABEL]: id } },
    clientConfig: clientConfig(address),
  })
}

function configuration(name: string, webhook: JsonObject): JsonObject {
  const fixed = { admissionReviewVersions: ['v1'], matchPolicy: 'Equivalent', sideEffects: 'NoneOnDryRun' }
  return {
    apiVersion: API_VERSION,
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name, labels: { 'app.kubernetes.io/managed-by': 'portcullis' } },
    webhooks: [{ ...webhook, ...fixed }],
  }
}

function rule(operation: string, resource: string): JsonObject {
  return { apiGroups: [''], apiVersions: ['v1'], operations: [operation], resources: [resource], scope: 'Namespaced' }
}

function clientConfig({ url, service, caPem, cell, token }: WebhookAddress): JsonObject {
  const path = token === '' ? `/${cell}` : `/${cell}/${token}`
  const caBundle = toBase64(caPem)
  return url === undefined ? { service: { ...service, path }, caBundle } : { url: `${url}${path}`, caBundle }
}

/** The name by which kube-apiserver looks up a webhook in the kubeconfig of its AdmissionConfiguration. */
export function credentialName({ url, service }: Pick<WebhookAddress, 'url' | 'service'>): string {
  if (service !== undefined) return `${service.name}.${service.namespace}.svc:${service.port}`
  const host = (url ?? '').slice('https://'.length)
  return /:\d+$/.test(host) ? host : `${host}:443`
}
