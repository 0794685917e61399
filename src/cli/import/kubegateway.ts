// `portcullis import kubegateway`: converts the UpstreamClusters of a KubeGateway control plane to objects for Portcullis. The manifests
// are
// the same, but not always their behavior (docs/coming-from-kubegateway.md): if a field can preserve it, the field is set; every
// other difference is reported.

import { checkUpstreamCluster } from '../../gateway/api/upstream-cluster/checks.ts'
import { UPSTREAM_CLUSTERS } from '../../gateway/api/upstream-cluster-kind.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { isRecord } from '../../kit/api/json/object-shape.ts'
import { nodePemChecks } from '../../pki/io/pem-checks.ts'
import { type ControlPlaneOptions, metadataOf, withControlPlane } from '../client/control-plane.ts'
import { type ImportedCluster, type ImportOutput, printImport, type Remark } from './output.ts'

/** Resolves with the exit code: 1 when an object would be rejected. */
export function importKubeGateway(options: ControlPlaneOptions & ImportOutput): Promise<number> {
  return withControlPlane({ ...options, owner: 'KubeGateway' }, async (client) => {
    const { items } = await client.list(UPSTREAM_CLUSTERS, '')
    if (items.length === 0) options.err('note: there is no UpstreamCluster\n')
    return printImport(items.map(importCluster), options)
  })
}

/** Annotations that only matter in the original control plane. */
const FOREIGN_ANNOTATIONS = new Set(['kubectl.kubernetes.io/last-applied-configuration'])

/** @param object an UpstreamCluster from KubeGateway's API server */
function importCluster(object: JsonObject): ImportedCluster {
  const { name, labels, annotations = {} } = metadataOf(object)
  const remarks: Remark[] = []
  const note = (path: string, message: string): void => void remarks.push({ severity: 'note', path, message })
  const kept = Object.entries(annotations).filter(([key]) => !FOREIGN_ANNOTATIONS.has(key))
  const spec = isRecord(object['spec']) ? convertSpec(name, object['spec'], note) : object['spec']
  const document = {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: {
      name,
      ...(labels !== undefined && { labels }),
      ...(kept.length > 0 && { annotations: Object.fromEntries(kept) }),
    },
    spec,
  }
  for (const { path, message, fix, severity } of checkUpstreamCluster(document, nodePemChecks)) {
    remarks.push({ severity, path, message: fix === '' ? message : `${message}; ${fix}` })
  }
  return { name, documents: [document], remarks }
}

type Note = (path: string, message: string) => void

function convertSpec(
  name: string,
  spec: Readonly<Record<string, unknown>>,
  note: Note,
): Readonly<Record<string, unknown>> {
  const policies = Array.isArray(spec['dispatchPolicies']) ? spec['dispatchPolicies'] : []
  for (const [p, policy] of policies.entries()) {
    const rules: unknown[] = isRecord(policy) && Array.isArray(policy['rules']) ? policy['rules'] : []
    for (const [r, rule] of rules.entries()) {
      if (isRecord(rule)) noteRule(rule, `spec.dispatchPolicies[${p}].rules[${r}]`, note)
    }
  }
  noteSecrets(spec, note)
  noteLimits(spec['flowControl'], note)
  const health = isRecord(spec['healthCheck']) ? {} : { healthCheck: { path: '/healthz', unhealthyThreshold: 1 } }
  if (Object.keys(health).length > 0)
    note('spec.healthCheck', 'set to what KubeGateway uses: /healthz, one failure counts')
  return { ...spec, ...convertClient(name, spec, note), ...health }
}

/** KubeGateway verifies server certificates for the name of the cluster; we verify the endpoint's host. */
function convertClient(name: string, spec: Readonly<Record<string, unknown>>, note: Note): { clientConfig?: object } {
  const client = spec['clientConfig']
  if (!isRecord(client)) return {}
  const converted: Record<string, unknown> = { ...client }
  const hasCa = client['caData'] !== undefined && client['caData'] !== ''
  if (client['insecure'] === true && hasCa) {
    delete converted['insecure']
    note('spec.clientConfig.insecure', 'removed: with a CA it has no effect, the servers are verified')
  }
  if (
    converted['insecure'] !== true &&
    hasHttps(spec) &&
    (client['serverName'] === undefined || client['serverName'] === '')
  ) {
    converted['serverName'] = name
    note(
      'spec.clientConfig.serverName',
      'set to the name of the cluster, which KubeGateway verifies; the default here is the endpoint',
    )
  }
  return { clientConfig: converted }
}

function hasHttps({ servers }: Readonly<Record<string, unknown>>): boolean {
  if (!Array.isArray(servers)) return false
  return servers.some((server: unknown) => {
    return isRecord(server) && typeof server['endpoint'] === 'string' && /^https:/i.test(server['endpoint'])
  })
}

const LISTS = ['verbs', 'apiGroups', 'resources', 'resourceNames', 'users', 'userGroups', 'nonResourceURLs'] as const

/** Where KubeGateway's code differs from its documentation, Portcullis follows the documentation. */
function noteRule(rule: Readonly<Record<string, unknown>>, path: string, note: Note): void {
  for (const field of LISTS) {
    const entries = rule[field]
    if (!Array.isArray(entries) || entries.includes('*')) continue
    const inverted = entries.filter((entry) => typeof entry === 'string' && entry.startsWith('-'))
    if (inverted.length === 0 || inverted.length < entries.length) continue
    const at = `${path}.${field}`
    if (field === 'nonResourceURLs') note(at, 'matches everything except these; KubeGateway ignores inverted URLs')
    else if (field === 'userGroups')
      note(at, 'matches users in none of these groups; in KubeGateway, users in any other group')
    else if (inverted.length > 1)
      note(at, 'matches everything except these; in KubeGateway, two inverted entries match everything')
    else if (field === 'users' && inverted.some((entry) => String(entry).endsWith('*'))) {
      note(at, 'matches users without such a name; in KubeGateway an inverted glob matches every user')
    }
  }
}

function noteSecrets(spec: Readonly<Record<string, unknown>>, note: Note): void {
  for (const [section, fields] of [
    ['clientConfig', ['bearerToken', 'keyData']],
    ['secureServing', ['keyData']],
  ] as const) {
    const part = spec[section]
    if (!isRecord(part)) continue
    for (const field of fields) {
      if (part[field] === undefined || part[field] === '') continue
      const reference = `${field.replace(/Data$/, '')}Ref`
      note(`spec.${section}.${field}`, `is in clear text: keep it in a Secret instead, and name that in ${reference}`)
    }
  }
}

function noteLimits(flowControl: unknown, note: Note): void {
  const schemas = isRecord(flowControl) ? flowControl['flowControlSchemas'] : undefined
  if (!Array.isArray(schemas)) return
  for (const [index, schema] of schemas.entries()) {
    if (!isRecord(schema) || (schema['strategy'] !== 'globalAllocate' && schema['strategy'] !== 'globalCount')) continue
    note(
      `spec.flowControl.flowControlSchemas[${index}]`,
      'is shared by replicas through Redis here; without --redis-url each replica has the local limit',
    )
  }
}
