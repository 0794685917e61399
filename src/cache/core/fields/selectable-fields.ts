// Which fields of an object a field selector may name, by version, and where their values are: what kube-apiserver 1.36 has
// (kubernetes/pkg/apis/*/*/conversion.go for the names, pkg/registry/*/*/strategy.go for the values).

import { type FieldTerm, parseFieldTerms } from '../../../kube/core/selectors/field-terms.ts'

/** The resource of a request. */
export interface Resource {
  /** '' = core. */
  readonly group: string
  readonly version: string
  /** Plural. */
  readonly resource: string
  readonly namespaced: boolean
}

/** Where an object has the value. */
export interface FieldPath {
  readonly json: readonly string[]
  /** Numbers of the fields of its Protobuf message. */
  readonly protobuf: readonly number[]
}

/** A value that is kept of every object. */
export interface SelectableField {
  /** The value is that of the first that is not ''. */
  readonly paths: readonly FieldPath[]
  /** Its text if the object does not have it. */
  readonly absent: '' | 'false' | '0'
  /** How Protobuf has it. */
  readonly type: 'text' | 'bool' | 'integer'
}

export interface SelectableFields {
  /** Those that are kept of every object, beside name and namespace. */
  readonly kept: readonly SelectableField[]
  /** By the name in selectors. */
  readonly byName: ReadonlyMap<string, FieldSource>
}

/** Index among the kept; `nothing`: may be named, but no object has it. */
type FieldSource = 'name' | 'namespace' | 'nothing' | number

/** What is selected by. */
export interface SelectedValues {
  /** '' = cluster-scoped. */
  readonly namespace: string
  readonly name: string
  /** The values of the kept fields, in their order. */
  readonly fields: readonly string[]
}

export type FieldMatcher = (object: SelectedValues) => boolean

const NAME: FieldRow = ['metadata.name', 'name']
const NAMESPACE: FieldRow = ['metadata.namespace', 'namespace']

/** Name in selectors, and where it is. */
type FieldRow = readonly [name: string, source: SelectableField | 'name' | 'namespace' | 'nothing']

function field(path: FieldPath, type: SelectableField['type'] = 'text'): SelectableField {
  return { paths: [path], absent: type === 'text' ? '' : type === 'bool' ? 'false' : '0', type }
}

function at(json: string, ...protobuf: readonly number[]): FieldPath {
  return { json: json.split('.'), protobuf }
}

const NODE_NAME = field(at('spec.nodeName', 2, 10))

const POD: readonly FieldRow[] = [
  NAME,
  NAMESPACE,
  ['spec.nodeName', NODE_NAME],
  // As clients of the first versions call it.
  ['spec.host', NODE_NAME],
  ['spec.restartPolicy', field(at('spec.restartPolicy', 2, 3))],
  ['spec.schedulerName', field(at('spec.schedulerName', 2, 19))],
  ['spec.serviceAccountName', field(at('spec.serviceAccountName', 2, 8))],
  ['spec.hostNetwork', field(at('spec.hostNetwork', 2, 11), 'bool')],
  ['status.phase', field(at('status.phase', 3, 1))],
  ['status.podIP', field(at('status.podIP', 3, 6))],
  ['status.podIPs', 'nothing'],
  ['status.nominatedNodeName', field(at('status.nominatedNodeName', 3, 11))],
]

/** @param of of which object the event is: its field, and that field's number */
function ofInvolved(name: string, of: string, number: number): readonly FieldRow[] {
  const parts = ['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath']
  return parts.map((part, index) => [`${name}.${part}`, field(at(`${of}.${part}`, number, index + 1))])
}

const EVENT_REPORTER = at('reportingComponent', 14)

const CORE_EVENT: readonly FieldRow[] = [
  NAME,
  NAMESPACE,
  ...ofInvolved('involvedObject', 'involvedObject', 2),
  ['reason', field(at('reason', 3))],
  ['reportingComponent', field(EVENT_REPORTER)],
  ['source', { paths: [at('source.component', 5, 1), EVENT_REPORTER], absent: '', type: 'text' }],
  ['type', field(at('type', 9))],
]

const EVENT: readonly FieldRow[] = [
  NAME,
  NAMESPACE,
  ...ofInvolved('regarding', 'regarding', 8),
  ['reason', field(at('reason', 7))],
  ['reportingController', field(at('reportingController', 4))],
  ['type', field(at('type', 11))],
]

const RESOURCE_SLICE: readonly FieldRow[] = [
  NAME,
  ['spec.nodeName', field(at('spec.nodeName', 2, 3))],
  ['spec.driver', field(at('spec.driver', 2, 1))],
]

const SIGNER_NAME = field(at('spec.signerName', 2, 1))

const TRUST_BUNDLE: readonly FieldRow[] = [NAME, ['spec.signerName', SIGNER_NAME]]

const POD_CERTIFICATE_REQUEST: readonly FieldRow[] = [
  NAME,
  ['spec.signerName', SIGNER_NAME],
  ['spec.podName', field(at('spec.podName', 2, 2))],
  ['spec.nodeName', field(at('spec.nodeName', 2, 6))],
]

/** By `group/version/resource`; all others have the name, and those with a namespace that too. */
const ROWS: ReadonlyMap<string, readonly FieldRow[]> = new Map([
  ['/v1/pods', POD],
  ['/v1/nodes', [NAME, ['spec.unschedulable', field(at('spec.unschedulable', 2, 4), 'bool')]]],
  ['/v1/namespaces', [NAME, ['status.phase', field(at('status.phase', 3, 1))]]],
  ['/v1/replicationcontrollers', [NAME, NAMESPACE, ['status.replicas', field(at('status.replicas', 3, 1), 'integer')]]],
  ['/v1/secrets', [NAME, NAMESPACE, ['type', field(at('type', 3))]]],
  [
    '/v1/services',
    [
      NAME,
      NAMESPACE,
      ['spec.clusterIP', field(at('spec.clusterIP', 2, 3))],
      ['spec.type', field(at('spec.type', 2, 4))],
    ],
  ],
  ['/v1/events', CORE_EVENT],
  ['events.k8s.io/v1/events', EVENT],
  ['batch/v1/jobs', [NAME, NAMESPACE, ['status.successful', field(at('status.succeeded', 3, 5), 'integer')]]],
  [
    'certificates.k8s.io/v1/certificatesigningrequests',
    [NAME, ['spec.signerName', field(at('spec.signerName', 2, 7))]],
  ],
  ['certificates.k8s.io/v1alpha1/clustertrustbundles', TRUST_BUNDLE],
  ['certificates.k8s.io/v1beta1/clustertrustbundles', TRUST_BUNDLE],
  ['certificates.k8s.io/v1alpha1/podcertificaterequests', POD_CERTIFICATE_REQUEST],
  ['certificates.k8s.io/v1beta1/podcertificaterequests', POD_CERTIFICATE_REQUEST],
  ['resource.k8s.io/v1/resourceslices', RESOURCE_SLICE],
  ['resource.k8s.io/v1beta1/resourceslices', RESOURCE_SLICE],
  ['resource.k8s.io/v1beta2/resourceslices', RESOURCE_SLICE],
] satisfies readonly (readonly [string, readonly FieldRow[]])[])

/**
 * Of the groups that kube-apiserver serves itself, cluster-scoped objects may be selected by a namespace, which is '' (runtime.DefaultMetaV1FieldSelectorConversion);
 * custom resources may not.
 */
const OWN_GROUPS: ReadonlySet<string> = new Set([
  '',
  'admissionregistration.k8s.io',
  'apiextensions.k8s.io',
  'apiregistration.k8s.io',
  'apps',
  'authentication.k8s.io',
  'authorization.k8s.io',
  'autoscaling',
  'batch',
  'certificates.k8s.io',
  'coordination.k8s.io',
  'discovery.k8s.io',
  'events.k8s.io',
  'flowcontrol.apiserver.k8s.io',
  'internal.apiserver.k8s.io',
  'networking.k8s.io',
  'node.k8s.io',
  'policy',
  'rbac.authorization.k8s.io',
  'resource.k8s.io',
  'scheduling.k8s.io',
  'storage.k8s.io',
  'storagemigration.k8s.io',
])

/** For resources and versions that it does not know: metadata.name, and metadata.namespace where there is one. */
export function selectableFields({ group, version, resource, namespaced }: Resource): SelectableFields {
  const rows = ROWS.get(`${group}/${version}/${resource}`)
  if (rows !== undefined) return fromRows(rows)
  return fromRows(namespaced || OWN_GROUPS.has(group) ? [NAME, NAMESPACE] : [NAME])
}

function fromRows(rows: readonly FieldRow[]): SelectableFields {
  const kept: SelectableField[] = []
  const byName = new Map<string, FieldSource>()
  for (const [name, source] of rows) {
    if (typeof source === 'string') byName.set(name, source)
    else {
      const known = kept.indexOf(source)
      byName.set(name, known >= 0 ? known : kept.push(source) - 1)
    }
  }
  return { kept, byName }
}

/** @returns undefined if the selector does not parse, or names a field that the resource does not have: the API server knows what to answer */
export function compileFieldSelector(text: string, fields: SelectableFields): FieldMatcher | undefined {
  const terms = termsOf(text)
  const tests: FieldMatcher[] = []
  for (const term of terms ?? []) {
    const source = fields.byName.get(term.field)
    if (source === undefined) return undefined
    tests.push(matcherOf(term, source))
  }
  if (terms === undefined) return undefined
  return (object) => tests.every((matches) => matches(object))
}

function termsOf(text: string): readonly FieldTerm[] | undefined {
  try {
    return parseFieldTerms(text)
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

function matcherOf({ value, negated }: FieldTerm, source: FieldSource): FieldMatcher {
  switch (source) {
    case 'name':
      return ({ name }) => (name === value) !== negated
    case 'namespace':
      return ({ namespace }) => (namespace === value) !== negated
    case 'nothing':
      return () => (value === '') !== negated
    default:
      return ({ fields }) => (fields[source] === value) !== negated
  }
}
