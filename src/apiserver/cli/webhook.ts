// `portcullis control webhook`: the configuration that makes the API server of --source kubernetes validate objects before it stores
// them, with the CA and the token of a gateway. deploy/webhook/validating-webhook.yaml is the same without them.

import { stringify } from 'yaml'
import { type CommandOutput, reportUserErrors } from '../../cli/command/output.ts'
import { controlPaths } from '../../gateway/io/listener/control-paths.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import type { ResourceKind } from '../../kube/api/resource-kind.ts'
import { readControlTokenKey } from '../../pki/io/control-pki.ts'
import { readTextFile } from '../../pki/io/pki-files.ts'
import { createWebhookTokens } from '../../pki/io/webhook-tokens.ts'

export interface ControlWebhookOptions extends CommandOutput {
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
