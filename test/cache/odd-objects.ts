// Objects whose forms are rare: characters that JSON of Go escapes, empty values, numbers that JavaScript cannot hold, fields in odd places.

export const ODD = 'odd'
export const EMPTY = 'empty'

/** In the order in which they are created. */
export interface OddObject {
  /** The path of the collection. */
  readonly path: string
  readonly object: object
  /** Written to the subresource `status` afterwards, as a merge patch. */
  readonly status?: object
}

const TEXT = '<a href="x&y">é \u2028 \u2029 😀 "quoted" \\ \t \u0001 \u007f </a>'
const GROUP = '/apis/example.com/v1'

const definition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'things.example.com' },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { plural: 'things', singular: 'thing', kind: 'Thing' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
}

const core = (resource: string): string => `/api/v1/namespaces/${ODD}/${resource}`
const container = { name: 'c', image: 'example.com/<c>', command: ['sh', '-c', 'a && b > c'] }

function pod(name: string, metadata: object, spec: object, status?: object): OddObject {
  const object = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, ...metadata },
    spec: { containers: [container], ...spec },
  }
  return { path: core('pods'), object, ...(status && { status }) }
}

function thing(name: string, fields: object, metadata: object = {}): OddObject {
  const object = { apiVersion: 'example.com/v1', kind: 'Thing', metadata: { name, ...metadata }, ...fields }
  return { path: `${GROUP}/namespaces/${ODD}/things`, object }
}

const involved = { kind: 'Pod', namespace: ODD, name: 'host', uid: 'u-1', apiVersion: 'v1', resourceVersion: '7' }

function event(name: string, fields: object): OddObject {
  const object = { apiVersion: 'v1', kind: 'Event', metadata: { name }, involvedObject: involved, ...fields }
  return { path: core('events'), object }
}

const template = { metadata: { labels: { app: 'a' } }, spec: { containers: [container] } }

export const BEFORE: readonly OddObject[] = [
  { path: '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', object: definition },
  ...[ODD, EMPTY].map((name) => ({
    path: '/api/v1/namespaces',
    object: { apiVersion: 'v1', kind: 'Namespace', metadata: { name } },
  })),
  {
    path: core('serviceaccounts'),
    object: { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } },
  },
]

export const OBJECTS: readonly OddObject[] = [
  {
    path: core('configmaps'),
    object: {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'text', labels: { app: 'a', empty: '' }, annotations: { 'example.com/text': TEXT, empty: '' } },
      data: { [`page.html`]: TEXT, empty: '' },
      binaryData: { bytes: 'AAH/' },
    },
  },
  { path: core('configmaps'), object: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'bare' } } },
  {
    path: core('secrets'),
    object: { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'a', generateName: 'a-' }, data: { k: 'AA==' } },
  },
  {
    path: core('secrets'),
    object: { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'b' }, type: 'example.com/a=b,c\\d' },
  },
  pod('plain', { labels: { pick: 'yes', empty: '' } }, {}),
  pod(
    'host',
    { labels: { pick: 'yes' }, finalizers: ['example.com/a', 'example.com/b'] },
    { hostNetwork: true, nodeName: 'node-0', restartPolicy: 'Never', schedulerName: 'other' },
    { phase: 'Running', podIP: '10.0.0.1', podIPs: [{ ip: '10.0.0.1' }, { ip: 'fd00::1' }] },
  ),
  pod(
    'owned',
    {
      labels: {},
      annotations: {},
      ownerReferences: [
        { apiVersion: 'v1', kind: 'ConfigMap', name: 'text', uid: 'u-1', controller: true, blockOwnerDeletion: false },
        { apiVersion: 'v1', kind: 'ConfigMap', name: 'bare', uid: 'u-2' },
      ],
    },
    {},
    { phase: 'Failed', nominatedNodeName: 'node-0', message: TEXT },
  ),
  {
    path: '/api/v1/nodes',
    object: { apiVersion: 'v1', kind: 'Node', metadata: { name: 'node-1' }, spec: { unschedulable: true } },
  },
  {
    path: core('services'),
    object: {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'a' },
      spec: { clusterIP: 'None', ports: [{ port: 80 }] },
    },
  },
  {
    path: core('services'),
    object: {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'b' },
      spec: { type: 'ExternalName', externalName: 'example.com' },
    },
  },
  {
    path: core('replicationcontrollers'),
    object: {
      apiVersion: 'v1',
      kind: 'ReplicationController',
      metadata: { name: 'a' },
      spec: { replicas: 3, selector: { app: 'a' }, template },
    },
    status: { replicas: 2 },
  },
  event('a', { reason: 'Odd', type: 'Warning', source: { component: 'kubelet', host: 'node-0' }, message: TEXT }),
  event('b', { reason: 'Even', type: 'Normal', reportingComponent: 'example.com/b', source: {} }),
  {
    path: `/apis/batch/v1/namespaces/${ODD}/jobs`,
    object: {
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { name: 'a' },
      spec: { template: { spec: { containers: [container], restartPolicy: 'Never' } } },
    },
    status: { succeeded: 1, startTime: '2026-01-01T00:00:00Z', uncountedTerminatedPods: {} },
  },
  {
    path: `/apis/apps/v1/namespaces/${ODD}/deployments`,
    object: {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'a' },
      spec: { selector: { matchLabels: { app: 'a' } }, template },
    },
  },
  {
    path: '/apis/resource.k8s.io/v1/resourceslices',
    object: {
      apiVersion: 'resource.k8s.io/v1',
      kind: 'ResourceSlice',
      metadata: { name: 'a' },
      spec: { driver: 'example.com', nodeName: 'node-0', pool: { name: 'a', resourceSliceCount: 1 } },
    },
  },
  {
    path: '/apis/resource.k8s.io/v1/resourceslices',
    object: {
      apiVersion: 'resource.k8s.io/v1',
      kind: 'ResourceSlice',
      metadata: { name: 'b' },
      spec: { driver: 'example.org', allNodes: true, pool: { name: 'b', resourceSliceCount: 1 } },
    },
  },
  thing('text', {
    alpha: TEXT,
    spec: { [`<&>`]: TEXT, empty: {}, none: [], nothing: null, nested: [[1], [{ a: [] }]] },
    status: { ok: true },
  }),
  thing(
    'owned',
    { spec: {} },
    {
      labels: { pick: 'yes', empty: '' },
      annotations: { 'example.com/text': TEXT },
      finalizers: ['example.com/a', 'example.com/b'],
      ownerReferences: [
        { apiVersion: 'v1', kind: 'ConfigMap', name: 'text', uid: 'u-1', controller: true, blockOwnerDeletion: false },
        { apiVersion: 'v1', kind: 'ConfigMap', name: 'bare', uid: 'u-2' },
      ],
    },
  ),
  thing('plain', { zeta: { metadata: { name: 'not this' }, kind: 'NotThis' } }, { labels: { pick: 'yes' } }),
]

/** JSON that JavaScript cannot write: sent as it stands. */
export const NUMBERS = `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"numbers"},"spec":{"big":9007199254740993,
"most":9223372036854775807,"float":1.5,"whole":100.0,"small":1e-7,"large":1e21,"larger":1.7976931348623157e308,"minus":-0.0}}`

export const THINGS = `${GROUP}/namespaces/${ODD}/things`
