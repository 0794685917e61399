// Objects with what their columns show, five minutes after they were created. A unit test has the cells that kube-apiserver 1.36.3 writes; on real clusters
// whatever it writes there is compared.

import type { Cell } from '../../../src/federation/core/tables/printer.ts'

export const TABLE_CREATED = '2026-01-01T00:00:00Z'
export const TABLE_NOW = '2026-01-01T00:05:00Z'

export interface TableObject {
  /** The path of the collection. */
  readonly path: string
  /** With its metadata but for creationTimestamp. */
  readonly object: Readonly<Record<string, unknown>>
  /** Written to the subresource `status` afterwards, as a merge patch. */
  readonly status?: object
  readonly cells: readonly Cell[]
  /** It is made by another way than by clients: an API server refuses it. */
  readonly isRefused?: true
}

const NAMESPACE = 'default'
const EARLIER = '2025-12-31T23:00:00Z'
const LATER = '2026-01-01T00:03:00Z'
const container = { name: 'c', image: 'i' }
const two = [container, { name: 'd', image: 'j' }]
const sidecar = { name: 's', image: 'i', restartPolicy: 'Always' }
const first = { name: 'init', image: 'i' }
const labels = { app: 'a', tier: 'b' }
const template = { metadata: { labels }, spec: { containers: two } }
const selector = { matchLabels: { app: 'a' } }
const many = {
  matchLabels: { app: 'a' },
  matchExpressions: [
    { key: 'tier', operator: 'In', values: ['c', 'b'] },
    { key: 'x', operator: 'NotIn', values: ['y'] },
    { key: 'a', operator: 'Exists' },
    { key: 'z', operator: 'DoesNotExist' },
  ],
}
const MANY = 'a,app=a,tier in (b,c),x notin (y),!z'

function named(group: string, kind: string, name: string, fields: object): Readonly<Record<string, unknown>> {
  const { metadata = {}, ...others } = fields as { metadata?: object }
  return { apiVersion: group, kind, metadata: { name, ...metadata }, ...others }
}

function inCore(resource: string, kind: string) {
  return (name: string, fields: object, cells: readonly Cell[], more: Partial<TableObject> = {}): TableObject => ({
    path: `/api/v1/namespaces/${NAMESPACE}/${resource}`,
    object: named('v1', kind, name, { metadata: { namespace: NAMESPACE }, ...fields }),
    cells: [name, ...cells],
    ...more,
  })
}

function inGroup(group: string, resource: string, kind: string, isNamespaced: boolean) {
  const scope = isNamespaced ? `/namespaces/${NAMESPACE}` : ''
  return (name: string, fields: object, cells: readonly Cell[], more: Partial<TableObject> = {}): TableObject => ({
    path: `/apis/${group}${scope}/${resource}`,
    object: named(group, kind, name, { ...(isNamespaced && { metadata: { namespace: NAMESPACE } }), ...fields }),
    cells: [name, ...cells],
    ...more,
  })
}

function global(resource: string, kind: string) {
  return (name: string, fields: object, cells: readonly Cell[], more: Partial<TableObject> = {}): TableObject => ({
    path: `/api/v1/${resource}`,
    object: named('v1', kind, name, fields),
    cells: [name, ...cells],
    ...more,
  })
}

/** @param shown ready, status and restarts */
function pod(
  name: string,
  shown: readonly [string, string, string],
  spec: object,
  status: object,
  last: readonly Cell[] = ['<none>', '<none>', '<none>', '<none>'],
  more: Partial<TableObject> = {},
): TableObject {
  const make = inCore('pods', 'Pod')
  return make(name, { spec: { containers: [container], ...spec } }, [...shown, '5m', ...last], { status, ...more })
}

const running = (name: string, more: object = {}) => ({
  name,
  image: 'i',
  imageID: '',
  ready: true,
  restartCount: 0,
  state: { running: { startedAt: TABLE_CREATED } },
  ...more,
})
const ended = (name: string, exitCode: number, more: object = {}, others: object = {}) => ({
  name,
  image: 'i',
  imageID: '',
  ready: false,
  restartCount: 0,
  state: { terminated: { exitCode, startedAt: TABLE_CREATED, finishedAt: LATER, ...more } },
  ...others,
})
const waiting = (name: string, reason: string) => ({
  name,
  image: 'i',
  imageID: '',
  ready: false,
  restartCount: 0,
  state: { waiting: { reason } },
})
const restarted = { lastState: { terminated: { exitCode: 1, finishedAt: LATER, startedAt: EARLIER } } }
/** A certificate request in PEM, base64. */
const REQUEST = [
  'LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIR01HNENBUUF3RERFS01BZ0dBMVVFQXd3QllUQlpNQk1HQnlxR1NNNDlBZ0VHQ0NxR1NN',
  'NDlBd0VIQTBJQQpCTEdwVmR5YUhHQU9jMExtWDhGRmlKeXVFanozVVZsS3dHWjVJejJobDE5eGg1THF0Tk9HNW1VSnVmNUFscUVpCm9UWkhObnRxdkQxN01G',
  'VkYvZEhXMEw2Z0FEQUtCZ2dxaGtqT1BRUURBZ05JQURCRkFpQnhxM2V4TzE1dTg0ZEYKUEZETXZlTkprV2UyRGV2UlF6bjB5WUt3c1lIeExRSWhBTVczN25u',
  'ZUdmNy9tQm5HSzRuMXR6SXYzZFQ4WXJaYgo4TDlSQnB4ZmxpR0cKLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg==',
].join('')
const condition = (type: string, status: string, more: object = {}) => ({ type, status, ...more })
const ON_NODE = ['<none>', 'n1', '<none>', '<none>']
const DELETED = { namespace: NAMESPACE, deletionTimestamp: LATER }

const PODS: readonly TableObject[] = [
  pod('pending', ['0/1', 'Pending', '0'], {}, { phase: 'Pending' }),
  pod(
    'running',
    ['2/2', 'Running', '3 (2m ago)'],
    { containers: two },
    {
      phase: 'Running',
      podIP: '10.0.0.1',
      podIPs: [{ ip: '10.0.0.1' }, { ip: 'fd00::1' }],
      containerStatuses: [running('c', { restartCount: 3, ...restarted }), running('d')],
    },
    ['10.0.0.1', '<none>', '<none>', '<none>'],
  ),
  pod(
    'half',
    ['1/2', 'NotReady', '0'],
    { containers: two },
    { phase: 'Running', containerStatuses: [running('c'), ended('d', 0, { reason: 'Completed' })] },
  ),
  pod(
    'half-ready',
    ['1/2', 'Running', '0'],
    { containers: two },
    {
      phase: 'Running',
      conditions: [condition('Ready', 'True')],
      containerStatuses: [running('c'), ended('d', 0, { reason: 'Completed' })],
    },
  ),
  pod(
    'one-failed',
    ['0/2', 'Error', '0'],
    { containers: two },
    {
      phase: 'Running',
      containerStatuses: [ended('c', 0, { reason: 'Completed' }), ended('d', 1, { reason: 'Error' })],
    },
  ),
  pod(
    'crash',
    ['0/1', 'CrashLoopBackOff', '0'],
    {},
    { phase: 'Running', containerStatuses: [waiting('c', 'CrashLoopBackOff')] },
  ),
  pod('code', ['0/1', 'ExitCode:3', '0'], {}, { phase: 'Running', containerStatuses: [ended('c', 3)] }),
  pod(
    'signal',
    ['0/1', 'Signal:9', '0'],
    {},
    { phase: 'Running', containerStatuses: [ended('c', 137, { signal: 9 })] },
  ),
  pod(
    'succeeded',
    ['0/1', 'Completed', '0'],
    {},
    { phase: 'Succeeded', containerStatuses: [ended('c', 0, { reason: 'Completed' })] },
  ),
  pod('evicted', ['0/1', 'Evicted', '0'], {}, { phase: 'Failed', reason: 'Evicted' }),
  pod(
    'init',
    ['0/1', 'Init:0/2', '0'],
    { initContainers: [first, { name: 'next', image: 'i' }] },
    {
      phase: 'Pending',
      initContainerStatuses: [running('init', { ready: false }), waiting('next', 'PodInitializing')],
    },
  ),
  pod(
    'init-waits',
    ['0/1', 'Init:ErrImagePull', '0'],
    { initContainers: [first] },
    { phase: 'Pending', initContainerStatuses: [waiting('init', 'ErrImagePull')] },
  ),
  pod(
    'init-failed',
    ['0/1', 'Init:ExitCode:2', '4 (2m ago)'],
    { initContainers: [first] },
    { phase: 'Pending', initContainerStatuses: [ended('init', 2, {}, { restartCount: 4, ...restarted })] },
  ),
  pod(
    'init-signal',
    ['0/1', 'Init:Signal:9', '0'],
    { initContainers: [first] },
    { phase: 'Pending', initContainerStatuses: [ended('init', 137, { signal: 9 })] },
  ),
  pod(
    'init-error',
    ['0/1', 'Init:Error', '0'],
    { initContainers: [first] },
    { phase: 'Pending', initContainerStatuses: [ended('init', 1, { reason: 'Error' })] },
  ),
  pod(
    'init-over',
    ['1/1', 'Running', '1'],
    { initContainers: [first] },
    {
      phase: 'Running',
      initContainerStatuses: [ended('init', 0, { reason: 'Completed' }, { restartCount: 5 })],
      containerStatuses: [running('c', { restartCount: 1 })],
    },
  ),
  pod(
    'sidecar',
    ['2/2', 'Running', '3 (2m ago)'],
    { initContainers: [first, sidecar] },
    {
      phase: 'Running',
      initContainerStatuses: [
        ended('init', 0, {}, { restartCount: 5 }),
        running('s', { started: true, restartCount: 2, ...restarted }),
      ],
      containerStatuses: [running('c', { restartCount: 1 })],
    },
  ),
  pod(
    'sidecar-starts',
    ['0/2', 'Init:1/2', '0'],
    { initContainers: [first, sidecar] },
    {
      phase: 'Pending',
      initContainerStatuses: [ended('init', 0), running('s', { started: false, ready: false })],
    },
  ),
  pod(
    'initialized',
    ['1/2', 'Running', '0'],
    { initContainers: [sidecar] },
    {
      phase: 'Running',
      conditions: [condition('Initialized', 'True')],
      initContainerStatuses: [ended('s', 1, { reason: 'Error' })],
      containerStatuses: [running('c')],
    },
    undefined,
    { cells: ['initialized', '1/2', 'Init:Error', '0', '5m', '<none>', '<none>', '<none>', '<none>'] },
  ),
  pod(
    'gated',
    ['0/1', 'SchedulingGated', '0'],
    { schedulingGates: [{ name: 'example.com/wait' }] },
    { phase: 'Pending', conditions: [condition('PodScheduled', 'False', { reason: 'SchedulingGated' })] },
  ),
  pod(
    'readiness',
    ['1/1', 'Running', '0'],
    { nodeName: 'n1', readinessGates: [{ conditionType: 'example.com/a' }, { conditionType: 'example.com/b' }] },
    {
      phase: 'Running',
      conditions: [condition('example.com/a', 'True'), condition('example.com/b', 'False')],
      containerStatuses: [running('c')],
    },
    ['<none>', 'n1', '<none>', '1/2'],
  ),
  pod('nominated', ['0/1', 'Pending', '0'], {}, { phase: 'Pending', nominatedNodeName: 'n2' }, [
    ...['<none>', '<none>', 'n2', '<none>'],
  ]),
  pod('deleted', ['0/1', 'Terminating', '0'], {}, { phase: 'Running' }, ON_NODE, {
    object: named('v1', 'Pod', 'deleted', { metadata: DELETED, spec: { containers: [container], nodeName: 'n1' } }),
  }),
  pod('lost', ['0/1', 'Unknown', '0'], {}, { phase: 'Running', reason: 'NodeLost' }, ON_NODE, {
    object: named('v1', 'Pod', 'lost', { metadata: DELETED, spec: { containers: [container], nodeName: 'n1' } }),
  }),
  pod('deleted-over', ['0/1', 'Failed', '0'], {}, { phase: 'Failed' }, ON_NODE, {
    object: named('v1', 'Pod', 'deleted-over', {
      metadata: DELETED,
      spec: { containers: [container], nodeName: 'n1' },
    }),
  }),
]

const replicaSet = inGroup('apps/v1', 'replicasets', 'ReplicaSet', true)
const deployment = inGroup('apps/v1', 'deployments', 'Deployment', true)
const job = inGroup('batch/v1', 'jobs', 'Job', true)
const cronJob = inGroup('batch/v1', 'cronjobs', 'CronJob', true)
const hpa = inGroup('autoscaling/v2', 'horizontalpodautoscalers', 'HorizontalPodAutoscaler', true)
const jobTemplate = { spec: { template: { spec: { containers: two, restartPolicy: 'Never' } } } }
const scaleTargetRef = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' }
const JOB = { template: { metadata: { labels }, spec: { containers: two, restartPolicy: 'Never' } } }
const OF_JOB = ['c,d', 'i,j', 'app=a']
const jobOf = (name: string, spec: object, status: object, cells: readonly Cell[]) =>
  job(name, { spec: { selector, manualSelector: true, ...JOB, ...spec } }, [...cells, '5m', ...OF_JOB], {
    status,
  })

const WORKLOADS: readonly TableObject[] = [
  inCore('replicationcontrollers', 'ReplicationController')(
    'rc',
    { spec: { replicas: 2, selector: labels, template } },
    [2, 1, 1, '5m', 'c,d', 'i,j', 'app=a,tier=b'],
    { status: { replicas: 1, readyReplicas: 1 } },
  ),
  replicaSet(
    'rs',
    {
      spec: {
        replicas: 3,
        selector: many,
        template: { ...template, metadata: { labels: { app: 'a', tier: 'b', a: '' } } },
      },
    },
    [3, 2, 1, '5m', 'c,d', 'i,j', MANY],
    {
      status: { replicas: 2, readyReplicas: 1 },
    },
  ),
  deployment(
    'web',
    {
      spec: {
        replicas: 3,
        selector: many,
        template: { ...template, metadata: { labels: { app: 'a', tier: 'b', a: '' } } },
      },
    },
    ['1/3', 2, 1, '5m', 'c,d', 'i,j', MANY],
    {
      status: { replicas: 3, updatedReplicas: 2, readyReplicas: 1, availableReplicas: 1, unavailableReplicas: 2 },
    },
  ),
  deployment('none', { spec: { replicas: 0, selector, template } }, ['0/0', 0, 0, '5m', 'c,d', 'i,j', 'app=a']),
  inGroup('apps/v1', 'statefulsets', 'StatefulSet', true)(
    'db',
    { spec: { replicas: 2, selector, serviceName: 'db', template } },
    ['1/2', '5m', 'c,d', 'i,j'],
    { status: { replicas: 2, readyReplicas: 1 } },
  ),
  inGroup('apps/v1', 'daemonsets', 'DaemonSet', true)(
    'agent',
    { spec: { selector, template: { ...template, spec: { containers: two, nodeSelector: { b: '2', a: '1' } } } } },
    [5, 4, 3, 2, 1, 'a=1,b=2', '5m', 'c,d', 'i,j', 'app=a'],
    {
      status: {
        desiredNumberScheduled: 5,
        currentNumberScheduled: 4,
        numberReady: 3,
        updatedNumberScheduled: 2,
        numberAvailable: 1,
        numberMisscheduled: 0,
      },
    },
  ),
  inGroup(
    'apps/v1',
    'controllerrevisions',
    'ControllerRevision',
    true,
  )(
    'rev',
    {
      metadata: {
        namespace: NAMESPACE,
        ownerReferences: [{ apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'agent', uid: 'u', controller: true }],
      },
      data: {},
      revision: 7,
    },
    ['daemonset.apps/agent', 7, '5m'],
  ),
  inGroup(
    'apps/v1',
    'controllerrevisions',
    'ControllerRevision',
    true,
  )('alone', { data: {}, revision: 1 }, ['<none>', 1, '5m']),
  inCore('podtemplates', 'PodTemplate')('tpl', { template }, ['c,d', 'i,j', 'app=a,tier=b']),
  jobOf(
    'done',
    { completions: 3 },
    {
      succeeded: 3,
      startTime: TABLE_CREATED,
      completionTime: LATER,
      conditions: [condition('SuccessCriteriaMet', 'True'), condition('Complete', 'True')],
    },
    ['Complete', '3/3', '3m'],
  ),
  jobOf(
    'one',
    {},
    { startTime: TABLE_CREATED, conditions: [condition('FailureTarget', 'True'), condition('Failed', 'True')] },
    ['Failed', '0/1', '5m'],
  ),
  jobOf('queue', { parallelism: 4 }, { succeeded: 1, conditions: [condition('Suspended', 'True')] }, [
    'Suspended',
    '1/1 of 4',
    '',
  ]),
  jobOf('criteria', { completions: 1 }, { conditions: [condition('SuccessCriteriaMet', 'True')] }, [
    'SuccessCriteriaMet',
    '0/1',
    '',
  ]),
  jobOf('runs', { completions: 1 }, { conditions: [condition('Complete', 'False')] }, ['Running', '0/1', '']),
  cronJob(
    'nightly',
    { spec: { schedule: '0 3 * * *', timeZone: 'Etc/UTC', suspend: true, jobTemplate } },
    ['0 3 * * *', 'Etc/UTC', 'True', 1, '65m', '5m', 'c,d', 'i,j', '<none>'],
    { status: { lastScheduleTime: EARLIER, active: [{ kind: 'Job', name: 'x' }] } },
  ),
  cronJob('plain', { spec: { schedule: '@daily', jobTemplate } }, [
    '@daily',
    '<none>',
    '<unset>',
    0,
    '<none>',
    '5m',
    'c,d',
    'i,j',
    '<none>',
  ]),
  hpa(
    'cpu',
    {
      spec: {
        scaleTargetRef,
        minReplicas: 2,
        maxReplicas: 9,
        metrics: [
          { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 80 } } },
        ],
      },
    },
    ['Deployment/web', 'cpu: 55%/80%', '2', 9, 4, '5m'],
    {
      status: {
        currentReplicas: 4,
        desiredReplicas: 4,
        currentMetrics: [
          { type: 'Resource', resource: { name: 'cpu', current: { averageValue: '1', averageUtilization: 55 } } },
        ],
      },
    },
  ),
  hpa(
    'mixed',
    {
      spec: {
        scaleTargetRef,
        maxReplicas: 9,
        metrics: [
          {
            type: 'External',
            external: { metric: { name: 'q' }, target: { type: 'AverageValue', averageValue: '30' } },
          },
          {
            type: 'Object',
            object: { metric: { name: 'q' }, describedObject: scaleTargetRef, target: { type: 'Value', value: '2k' } },
          },
          { type: 'Pods', pods: { metric: { name: 'q' }, target: { type: 'AverageValue', averageValue: '100m' } } },
        ],
      },
    },
    ['Deployment/web', '<unknown>/30 (avg), 7/2k + 1 more...', '<unset>', 9, 0, '5m'],
    {
      status: {
        currentMetrics: [
          { type: 'External' },
          {
            type: 'Object',
            object: { metric: { name: 'q' }, describedObject: scaleTargetRef, current: { value: '7' } },
          },
        ],
      },
    },
  ),
  hpa(
    'memory',
    {
      spec: {
        scaleTargetRef,
        minReplicas: 1,
        maxReplicas: 3,
        metrics: [
          {
            type: 'ContainerResource',
            containerResource: {
              name: 'memory',
              container: 'c',
              target: { type: 'AverageValue', averageValue: '1Gi' },
            },
          },
          { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 50 } } },
        ],
      },
    },
    ['Deployment/web', 'memory: <unknown>/1Gi, cpu: <unknown>/50%', '1', 3, 0, '5m'],
    { status: { desiredReplicas: 0 } },
  ),
  hpa('idle', { spec: { scaleTargetRef, maxReplicas: 3 } }, ['Deployment/web', '<none>', '<unset>', 3, 0, '5m'], {}),
  inGroup('policy/v1', 'poddisruptionbudgets', 'PodDisruptionBudget', true)(
    'half',
    { spec: { minAvailable: '50%', selector } },
    ['50%', 'N/A', 2, '5m'],
    { status: { disruptionsAllowed: 2, currentHealthy: 4, desiredHealthy: 2, expectedPods: 4 } },
  ),
  inGroup(
    'policy/v1',
    'poddisruptionbudgets',
    'PodDisruptionBudget',
    true,
  )('one', { spec: { maxUnavailable: 1, selector } }, ['N/A', '1', 0, '5m']),
]

const node = global('nodes', 'Node')
const service = inCore('services', 'Service')
const event = inCore('events', 'Event')
const ingress = inGroup('networking.k8s.io/v1', 'ingresses', 'Ingress', true)
const ingressClass = inGroup('networking.k8s.io/v1', 'ingressclasses', 'IngressClass', false)
const slice = inGroup('discovery.k8s.io/v1', 'endpointslices', 'EndpointSlice', true)
const backend = { service: { name: 's', port: { number: 80 } } }
const ruleOf = (host?: string) => ({
  ...(host && { host }),
  http: { paths: [{ path: '/', pathType: 'Prefix', backend }] },
})
const involvedObject = { kind: 'Pod', namespace: NAMESPACE, name: 'web', fieldPath: 'spec.containers{c}' }
/** Their name is the last cell. */
const eventOf = (name: string, fields: object, cells: readonly Cell[]): TableObject => ({
  ...event(name, { involvedObject, ...fields }, []),
  cells: [...cells, name],
})

const OTHERS: readonly TableObject[] = [
  node(
    'n1',
    {
      metadata: {
        labels: {
          'node-role.kubernetes.io/worker': '',
          'node-role.kubernetes.io/control-plane': '',
          'kubernetes.io/role': 'old',
        },
      },
      spec: { unschedulable: true },
    },
    [
      'Ready,SchedulingDisabled',
      'control-plane,old,worker',
      '5m',
      'v1.36.3',
      '10.0.0.9',
      '1.2.3.4',
      'Linux',
      '6.1 (amd64)',
      'containerd://2',
    ],
    {
      status: {
        conditions: [condition('MemoryPressure', 'False'), condition('Ready', 'True')],
        addresses: [
          { type: 'Hostname', address: 'n1' },
          { type: 'InternalIP', address: '10.0.0.9' },
          { type: 'ExternalIP', address: '1.2.3.4' },
        ],
        nodeInfo: {
          kubeletVersion: 'v1.36.3',
          osImage: 'Linux',
          kernelVersion: '6.1',
          architecture: 'amd64',
          containerRuntimeVersion: 'containerd://2',
          ...{ machineID: '', systemUUID: '', bootID: '', kubeProxyVersion: '', operatingSystem: '' },
        },
      },
    },
  ),
  node('n2', {}, ['NotReady', '<none>', '5m', '', '<none>', '<none>', '<unknown>', '<unknown>', '<unknown>'], {
    status: { conditions: [condition('Ready', 'Unknown')] },
  }),
  node('n3', {}, ['Unknown', '<none>', '5m', '', '<none>', '<none>', '<unknown>', '<unknown>', '<unknown>']),
  global('namespaces', 'Namespace')('shop', {}, ['Active', '5m'], { status: { phase: 'Active' } }),
  service(
    'cluster',
    {
      spec: {
        type: 'ClusterIP',
        clusterIP: '10.96.0.20',
        clusterIPs: ['10.96.0.20'],
        ports: [
          { name: 'a', port: 80, protocol: 'TCP' },
          { name: 'b', port: 53, protocol: 'UDP' },
        ],
        selector: labels,
      },
    },
    ['ClusterIP', '10.96.0.20', '<none>', '80/TCP,53/UDP', '5m', 'app=a,tier=b'],
    { isRefused: true },
  ),
  service(
    'headless',
    { spec: { type: 'ClusterIP', clusterIP: 'None', clusterIPs: ['None'], externalIPs: ['1.2.3.4', '1.2.3.5'] } },
    ['ClusterIP', 'None', '1.2.3.4,1.2.3.5', '<none>', '5m', '<none>'],
  ),
  service('node', { spec: { type: 'NodePort', ports: [{ port: 80, nodePort: 30080, protocol: 'TCP' }] } }, [
    'NodePort',
    '<none>',
    '<none>',
    '80:30080/TCP',
    '5m',
    '<none>',
  ]),
  service('pending', { spec: { type: 'LoadBalancer', ports: [{ port: 80, protocol: 'TCP' }] } }, [
    'LoadBalancer',
    '<none>',
    '<pending>',
    '80/TCP',
    '5m',
    '<none>',
  ]),
  service(
    'balanced',
    { spec: { type: 'LoadBalancer', externalIPs: ['9.9.9.9'], ports: [{ port: 80, protocol: 'TCP' }] } },
    ['LoadBalancer', '<none>', '5.6.7.8,a-very-long-name.elb.example.com,9.9.9.9', '80/TCP', '5m', '<none>'],
    {
      status: { loadBalancer: { ingress: [{ hostname: 'a-very-long-name.elb.example.com' }, { ip: '5.6.7.8' }] } },
    },
  ),
  service('external', { spec: { type: 'ExternalName', externalName: 'example.com' } }, [
    'ExternalName',
    '<none>',
    'example.com',
    '<none>',
    '5m',
    '<none>',
  ]),
  inCore('endpoints', 'Endpoints')('none', {}, ['<none>', '5m']),
  inCore('endpoints', 'Endpoints')(
    'many',
    {
      subsets: [
        {
          addresses: [{ ip: '10.0.0.1' }, { ip: 'fd00::1' }],
          ports: [
            { name: 'a', port: 80 },
            { name: 'b', port: 443 },
          ],
        },
        { addresses: [{ ip: '10.0.0.3' }] },
      ],
    },
    ['10.0.0.1:80,[fd00::1]:80,10.0.0.1:443 + 2 more...', '5m'],
  ),
  slice(
    'many',
    {
      addressType: 'IPv4',
      ports: [
        { name: 'a', port: 80 },
        { name: 'b', port: 81 },
        { name: 'c', port: 82 },
        { name: 'd', port: 83 },
      ],
      endpoints: [{ addresses: ['10.0.0.1'] }, { addresses: ['10.0.0.2'] }],
    },
    ['IPv4', '80,81,82 + 1 more...', '10.0.0.1,10.0.0.2', '5m'],
  ),
  slice('empty', { addressType: 'IPv6', endpoints: [] }, ['IPv6', '<unset>', '<unset>', '5m']),
  slice(
    'any',
    { addressType: 'IPv4', ports: [{ name: 'a' }, {}], endpoints: [] },
    ['IPv4', 'a,*', '<unset>', '5m'],
    {},
  ),
  inCore('configmaps', 'ConfigMap')('cm', { data: { a: '1', b: '2' }, binaryData: { c: 'AA==' } }, [3, '5m']),
  inCore('secrets', 'Secret')('sec', { type: 'Opaque', data: { a: 'AA==' } }, ['Opaque', 1, '5m']),
  inCore('serviceaccounts', 'ServiceAccount')('robot', {}, ['5m']),
  inCore('resourcequotas', 'ResourceQuota')(
    'quota',
    { spec: { hard: { 'limits.cpu': '4', 'requests.cpu': '2', pods: '10' } } },
    ['pods: 3/10, requests.cpu: 500m/2', 'limits.cpu: 0/4', '5m'],
    {
      status: {
        hard: { 'limits.cpu': '4', 'requests.cpu': '2', pods: '10' },
        used: { pods: '3', 'requests.cpu': '500m' },
      },
    },
  ),
  inCore('limitranges', 'LimitRange')(
    'range',
    { spec: { limits: [{ type: 'PersistentVolumeClaim', max: { storage: '1Ti' } }] } },
    [TABLE_CREATED],
  ),
  global('persistentvolumes', 'PersistentVolume')(
    'pv',
    {
      spec: {
        capacity: { storage: '5Gi' },
        accessModes: ['ReadWriteMany', 'ReadWriteOnce'],
        persistentVolumeReclaimPolicy: 'Retain',
        storageClassName: 'fast',
        volumeMode: 'Filesystem',
        claimRef: { namespace: NAMESPACE, name: 'data' },
        hostPath: { path: '/x' },
      },
    },
    ['5Gi', 'RWO,RWX', 'Retain', 'Bound', 'default/data', 'fast', '<unset>', '', '5m', 'Filesystem'],
    { status: { phase: 'Bound' } },
  ),
  inCore('persistentvolumeclaims', 'PersistentVolumeClaim')(
    'data',
    {
      metadata: { namespace: NAMESPACE, annotations: { 'volume.beta.kubernetes.io/storage-class': 'old' } },
      spec: {
        accessModes: ['ReadWriteOnce'],
        volumeName: 'pv',
        volumeMode: 'Block',
        resources: { requests: { storage: '1Gi' } },
      },
    },
    ['Bound', 'pv', '5Gi', 'RWO', 'old', '<unset>', '5m', 'Block'],
    {
      status: { phase: 'Bound', accessModes: ['ReadWriteOnce'], capacity: { storage: '5Gi' } },
    },
  ),
  inCore('persistentvolumeclaims', 'PersistentVolumeClaim')(
    'waits',
    {
      spec: { accessModes: ['ReadWriteOnce'], storageClassName: 'fast', resources: { requests: { storage: '1Gi' } } },
    },
    ['Pending', '', '', '', 'fast', '<unset>', '5m', '<unset>'],
    { status: { phase: 'Pending' } },
  ),
  eventOf(
    'old',
    {
      type: 'Warning',
      reason: 'BackOff',
      message: ' it fails\n',
      count: 4,
      source: { component: 'kubelet', host: 'n1' },
      firstTimestamp: EARLIER,
      lastTimestamp: LATER,
    },
    ['2m', 'Warning', 'BackOff', 'pod/web', 'spec.containers{c}', 'kubelet, n1', 'it fails', '65m', 4],
  ),
  eventOf(
    'series',
    {
      type: 'Normal',
      reason: 'Seen',
      action: 'See',
      message: 'm',
      eventTime: '2026-01-01T00:00:00.000000Z',
      reportingComponent: 'example.com/c',
      reportingInstance: 'c-1',
      series: { count: 9, lastObservedTime: '2026-01-01T00:03:00.000000Z' },
    },
    ['2m', 'Normal', 'Seen', 'pod/web', 'spec.containers{c}', 'example.com/c, c-1', 'm', '5m', 9],
  ),
  eventOf('bare', { involvedObject: { kind: 'Node', namespace: NAMESPACE } }, [
    '<unknown>',
    '',
    '',
    'node',
    '',
    '',
    '',
    '<unknown>',
    1,
  ]),
  ingress('all', { spec: { defaultBackend: backend } }, ['<none>', '*', '', '80', '5m']),
  ingress(
    'hosts',
    {
      spec: {
        ingressClassName: 'nginx',
        tls: [{ hosts: ['a'] }],
        rules: ['a', 'b', 'c', 'd'].map((host) => ruleOf(`${host}.com`)),
      },
    },
    ['nginx', 'a.com,b.com,c.com + 1 more...', '1.2.3.4', '80, 443', '5m'],
    { status: { loadBalancer: { ingress: [{ ip: '1.2.3.4' }] } } },
  ),
  ingress('three', { spec: { rules: [ruleOf(), ruleOf('a.com'), ruleOf('b.com'), ruleOf('c.com')] } }, [
    '<none>',
    'a.com,b.com,c.com',
    '',
    '80',
    '5m',
  ]),
  {
    ...ingressClass(
      'nginx',
      {
        metadata: { annotations: { 'ingressclass.kubernetes.io/is-default-class': 'true' } },
        spec: { controller: 'example.com/nginx', parameters: { apiGroup: 'example.com', kind: 'Params', name: 'p' } },
      },
      [],
    ),
    cells: ['nginx (default)', 'example.com/nginx', 'Params.example.com/p', '5m'],
  },
  ingressClass('bare', { spec: { controller: 'example.com/c' } }, ['example.com/c', '<none>', '5m']),
  inGroup(
    'networking.k8s.io/v1',
    'networkpolicies',
    'NetworkPolicy',
    true,
  )('deny', { spec: { podSelector: {} } }, ['<none>', '5m']),
  inGroup(
    'networking.k8s.io/v1',
    'networkpolicies',
    'NetworkPolicy',
    true,
  )('some', { spec: { podSelector: many } }, [MANY, '5m']),
  inGroup('rbac.authorization.k8s.io/v1', 'roles', 'Role', true)('reader', { rules: [] }, [TABLE_CREATED]),
  inGroup(
    'rbac.authorization.k8s.io/v1',
    'rolebindings',
    'RoleBinding',
    true,
  )(
    'readers',
    {
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'reader' },
      subjects: [
        { kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'alice' },
        { kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'bob' },
        { kind: 'Group', apiGroup: 'rbac.authorization.k8s.io', name: 'dev' },
        { kind: 'ServiceAccount', name: 'robot', namespace: NAMESPACE },
      ],
    },
    ['Role/reader', '5m', 'alice, bob', 'dev', 'default/robot'],
  ),
  inGroup(
    'coordination.k8s.io/v1',
    'leases',
    'Lease',
    true,
  )('leader', { spec: { holderIdentity: 'me' } }, ['me', '5m']),
  inGroup(
    'scheduling.k8s.io/v1',
    'priorityclasses',
    'PriorityClass',
    false,
  )('high', { value: 1000, globalDefault: true, preemptionPolicy: 'Never' }, [1000, true, '5m', 'Never']),
  inGroup('node.k8s.io/v1', 'runtimeclasses', 'RuntimeClass', false)('kata', { handler: 'kata' }, ['kata', '5m']),
  inGroup(
    'certificates.k8s.io/v1',
    'certificatesigningrequests',
    'CertificateSigningRequest',
    false,
  )(
    'pending',
    { spec: { signerName: 'example.com/s', request: REQUEST, usages: ['client auth'], username: 'alice' } },
    ['5m', 'example.com/s', 'alice', '<none>', 'Pending'],
  ),
  inGroup('certificates.k8s.io/v1', 'certificatesigningrequests', 'CertificateSigningRequest', false)(
    'csr',
    {
      spec: {
        signerName: 'example.com/s',
        request: 'AA==',
        usages: ['client auth'],
        username: 'alice',
        expirationSeconds: 7200,
      },
    },
    ['5m', 'example.com/s', 'alice', '120m', 'Approved,Issued'],
    { isRefused: true, status: { conditions: [condition('Approved', 'True')], certificate: 'AA==' } },
  ),
  inGroup('certificates.k8s.io/v1', 'certificatesigningrequests', 'CertificateSigningRequest', false)(
    'denied',
    {
      spec: { signerName: 'example.com/s', request: 'AA==', usages: ['client auth'], username: 'alice' },
    },
    ['5m', 'example.com/s', 'alice', '<none>', 'Denied,Failed'],
    {
      isRefused: true,
      status: { conditions: [condition('Approved', 'True'), condition('Denied', 'True'), condition('Failed', 'True')] },
    },
  ),
  {
    ...inGroup(
      'storage.k8s.io/v1',
      'storageclasses',
      'StorageClass',
      false,
    )(
      'fast',
      {
        metadata: { annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
        provisioner: 'example.com/p',
        allowVolumeExpansion: true,
        volumeBindingMode: 'WaitForFirstConsumer',
        reclaimPolicy: 'Retain',
      },
      [],
    ),
    cells: ['fast (default)', 'example.com/p', 'Retain', 'WaitForFirstConsumer', true, '5m'],
  },
  inGroup(
    'storage.k8s.io/v1',
    'storageclasses',
    'StorageClass',
    false,
  )('slow', { provisioner: 'example.com/p' }, ['example.com/p', 'Delete', 'Immediate', false, '5m']),
  inGroup('storage.k8s.io/v1', 'volumeattachments', 'VolumeAttachment', false)(
    'va',
    { spec: { attacher: 'a.example.com', nodeName: 'n1', source: { persistentVolumeName: 'pv' } } },
    ['a.example.com', 'pv', 'n1', true, '5m'],
    { status: { attached: true } },
  ),
  inGroup(
    'storage.k8s.io/v1',
    'csinodes',
    'CSINode',
    false,
  )('n1', { spec: { drivers: [{ name: 'a', nodeID: 'x', topologyKeys: [] }] } }, [1, '5m']),
  inGroup(
    'storage.k8s.io/v1',
    'csidrivers',
    'CSIDriver',
    false,
  )(
    'csi.example.com',
    {
      spec: {
        attachRequired: false,
        podInfoOnMount: true,
        storageCapacity: true,
        tokenRequests: [{ audience: 'a' }, { audience: 'b' }],
        requiresRepublish: true,
        volumeLifecycleModes: ['Persistent', 'Ephemeral'],
      },
    },
    [false, true, true, 'a,b', true, 'Persistent,Ephemeral', '5m'],
  ),
  inGroup(
    'storage.k8s.io/v1',
    'csidrivers',
    'CSIDriver',
    false,
  )('bare.example.com', { spec: {} }, [true, false, false, '<unset>', false, '<none>', '5m']),
  inGroup(
    'storage.k8s.io/v1',
    'csistoragecapacities',
    'CSIStorageCapacity',
    true,
  )('cap', { storageClassName: 'fast', capacity: '10Gi' }, [TABLE_CREATED]),
  inGroup(
    'admissionregistration.k8s.io/v1',
    'validatingwebhookconfigurations',
    'ValidatingWebhookConfiguration',
    false,
  )('hooks', { webhooks: [] }, [0, '5m']),
  inGroup(
    'admissionregistration.k8s.io/v1',
    'validatingadmissionpolicies',
    'ValidatingAdmissionPolicy',
    false,
  )(
    'policy',
    {
      spec: {
        failurePolicy: 'Ignore',
        paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
        matchConstraints: {
          resourceRules: [
            { apiGroups: ['example.com'], apiVersions: ['v1'], operations: ['CREATE'], resources: ['nothing'] },
          ],
        },
        validations: [{ expression: 'true' }],
      },
    },
    [1, 'v1/ConfigMap', '5m'],
  ),
  inGroup(
    'admissionregistration.k8s.io/v1',
    'validatingadmissionpolicybindings',
    'ValidatingAdmissionPolicyBinding',
    false,
  )(
    'binding',
    {
      spec: {
        policyName: 'policy',
        validationActions: ['Audit'],
        paramRef: { name: 'cm', parameterNotFoundAction: 'Allow' },
      },
    },
    ['policy', '*/cm', '5m'],
  ),
  inGroup(
    'flowcontrol.apiserver.k8s.io/v1',
    'flowschemas',
    'FlowSchema',
    false,
  )(
    'flow',
    {
      spec: {
        priorityLevelConfiguration: { name: 'exempt' },
        matchingPrecedence: 9000,
        distinguisherMethod: { type: 'ByUser' },
      },
    },
    ['exempt', 9000, 'ByUser', '5m', '?'],
  ),
  inGroup(
    'flowcontrol.apiserver.k8s.io/v1',
    'prioritylevelconfigurations',
    'PriorityLevelConfiguration',
    false,
  )(
    'level',
    {
      spec: {
        type: 'Limited',
        limited: {
          nominalConcurrencyShares: 5,
          lendablePercent: 0,
          limitResponse: { type: 'Queue', queuing: { queues: 4, handSize: 2, queueLengthLimit: 50 } },
        },
      },
    },
    ['Limited', 5, 4, 2, 50, '5m'],
  ),
  inGroup(
    'flowcontrol.apiserver.k8s.io/v1',
    'prioritylevelconfigurations',
    'PriorityLevelConfiguration',
    false,
  )(
    'reject',
    {
      spec: {
        type: 'Limited',
        limited: { nominalConcurrencyShares: 5, lendablePercent: 0, limitResponse: { type: 'Reject' } },
      },
    },
    ['Limited', 5, '<none>', '<none>', '<none>', '5m'],
  ),
  inGroup('resource.k8s.io/v1', 'resourceclaims', 'ResourceClaim', true)('claim', { spec: {} }, ['pending', '5m']),
  inGroup('resource.k8s.io/v1', 'resourceclaims', 'ResourceClaim', true)(
    'taken',
    { spec: {} },
    ['allocated,reserved', '5m'],
    { status: { allocation: {}, reservedFor: [{ resource: 'pods', name: 'p', uid: 'u' }] } },
  ),
  inGroup(
    'resource.k8s.io/v1',
    'resourceslices',
    'ResourceSlice',
    false,
  )(
    'slice',
    {
      spec: { nodeName: 'n1', driver: 'gpu.example.com', pool: { name: 'pool', generation: 1, resourceSliceCount: 1 } },
    },
    ['n1', 'gpu.example.com', 'pool', '5m'],
  ),
  inGroup(
    'networking.k8s.io/v1',
    'servicecidrs',
    'ServiceCIDR',
    false,
  )('more', { spec: { cidrs: ['10.200.0.0/24', 'fd01::/64'] } }, ['10.200.0.0/24,fd01::/64', '5m']),
]

export const TABLE_OBJECTS: readonly TableObject[] = [...PODS, ...WORKLOADS, ...OTHERS]
