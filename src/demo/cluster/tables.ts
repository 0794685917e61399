// DEMO ONLY. What `kubectl get` prints: meta.k8s.io/v1 Table, with kube-apiserver's columns
// (kubernetes/pkg/printers/internalversion/printers.go).

import { type DemoObject, type Json, listAt, numberAt, textAt, valueAt } from './json.ts'
import type { Resource } from './resources.ts'

interface Column {
  readonly name: string
  readonly type: 'string' | 'integer' | 'date'
  /** Above 0: with -o wide only. */
  readonly priority: number
  readonly cell: (object: DemoObject, nowMs: number) => unknown
}

/** `withColumns`: a watch sends the definitions in its first event only. */
export function tableOf(
  of: Resource,
  objects: readonly DemoObject[],
  version: string,
  nowMs: number,
  withColumns = true,
): Json {
  const columns = COLUMNS[of.resource] ?? [NAME, AGE]
  const rows = objects.map((object) => ({
    cells: columns.map((column) => column.cell(object, nowMs)),
    object: { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: object.metadata },
  }))
  const columnDefinitions = columns.map(({ name, type, priority }) => ({
    name,
    type,
    priority,
    format: name === 'Name' ? 'name' : '',
    description: '',
  }))
  return {
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1',
    metadata: { resourceVersion: version },
    columnDefinitions: withColumns ? columnDefinitions : null,
    rows,
  }
}

/** kubectl's ages: two units up to some hours, then one (apimachinery/pkg/util/duration). */
export function age(sinceText: string, nowMs: number): string {
  const since = Date.parse(sinceText)
  if (Number.isNaN(since)) return '<unknown>'
  const seconds = Math.max(0, Math.floor((nowMs - since) / 1000))
  const minutes = Math.floor(seconds / 60)
  const hours = Math.floor(minutes / 60)
  if (seconds < 120) return `${seconds}s`
  if (minutes < 10) return seconds % 60 === 0 ? `${minutes}m` : `${minutes}m${seconds % 60}s`
  if (hours < 3) return `${minutes}m`
  if (hours < 8) return minutes % 60 === 0 ? `${hours}h` : `${hours}h${minutes % 60}m`
  return hours < 48 ? `${hours}h` : `${Math.floor(hours / 24)}d`
}

function column(name: string, cell: Column['cell'], type: Column['type'] = 'string', priority = 0): Column {
  return { name, type, priority, cell }
}

function textColumn(name: string, path: string, priority = 0): Column {
  return column(name, (object) => textAt(object, path) || '<none>', 'string', priority)
}

function integerColumn(name: string, path: string): Column {
  return column(name, (object) => numberAt(object, path), 'integer')
}

const NAME = column('Name', (object) => object.metadata.name)
const AGE = column('Age', (object, nowMs) => age(object.metadata.creationTimestamp ?? '', nowMs), 'date')

const COLUMNS: Readonly<Record<string, readonly Column[]>> = {
  pods: [
    NAME,
    column('Ready', readyContainers),
    column('Status', podStatus),
    column('Restarts', restarts, 'integer'),
    AGE,
    textColumn('IP', 'status.podIP', 1),
    textColumn('Node', 'spec.nodeName', 1),
  ],
  nodes: [
    NAME,
    column('Status', nodeStatus),
    column('Roles', nodeRoles),
    AGE,
    textColumn('Version', 'status.nodeInfo.kubeletVersion'),
    column('Internal-IP', internalIP, 'string', 1),
  ],
  namespaces: [NAME, textColumn('Status', 'status.phase'), AGE],
  deployments: [
    NAME,
    column('Ready', (one) => `${numberAt(one, 'status.readyReplicas')}/${numberAt(one, 'spec.replicas', 1)}`),
    integerColumn('Up-to-date', 'status.updatedReplicas'),
    integerColumn('Available', 'status.availableReplicas'),
    AGE,
  ],
  services: [
    NAME,
    textColumn('Type', 'spec.type'),
    textColumn('Cluster-IP', 'spec.clusterIP'),
    column('External-IP', () => '<none>'),
    column('Port(s)', servicePorts),
    AGE,
  ],
  configmaps: [NAME, column('Data', dataCount, 'integer'), AGE],
  secrets: [NAME, textColumn('Type', 'type'), column('Data', dataCount, 'integer'), AGE],
  serviceaccounts: [NAME, column('Secrets', (one) => listAt(one, 'secrets').length, 'integer'), AGE],
  leases: [NAME, textColumn('Holder', 'spec.holderIdentity'), AGE],
  events: [
    column('Last Seen', (event, nowMs) => age(textAt(event, 'lastTimestamp'), nowMs)),
    textColumn('Type', 'type'),
    textColumn('Reason', 'reason'),
    column('Object', (event) => {
      return `${textAt(event, 'involvedObject.kind').toLowerCase()}/${textAt(event, 'involvedObject.name')}`
    }),
    textColumn('Message', 'message'),
  ],
}

function readyContainers(pod: DemoObject): string {
  const ready = listAt(pod, 'status.containerStatuses').filter((status) => valueAt(status, 'ready') === true)
  return `${ready.length}/${listAt(pod, 'spec.containers').length}`
}

function podStatus(pod: DemoObject): string {
  if (pod.metadata.deletionTimestamp !== undefined) return 'Terminating'
  return waitingReason(pod) || textAt(pod, 'status.phase') || 'Unknown'
}

function waitingReason(pod: DemoObject): string {
  for (const status of listAt(pod, 'status.containerStatuses')) {
    const reason = textAt(status, 'state.waiting.reason')
    if (reason !== '') return reason
  }
  return ''
}

function restarts(pod: DemoObject): number {
  return listAt(pod, 'status.containerStatuses').reduce<number>((sum, one) => sum + numberAt(one, 'restartCount'), 0)
}

function nodeStatus(node: DemoObject): string {
  const ready = listAt(node, 'status.conditions').find((condition) => textAt(condition, 'type') === 'Ready')
  const status = textAt(ready, 'status') === 'True' ? 'Ready' : 'NotReady'
  return valueAt(node, 'spec.unschedulable') === true ? `${status},SchedulingDisabled` : status
}

function nodeRoles(node: DemoObject): string {
  const prefix = 'node-role.kubernetes.io/'
  const roles = Object.keys(node.metadata.labels ?? {}).filter((label) => label.startsWith(prefix))
  return roles.map((label) => label.slice(prefix.length)).join(',') || '<none>'
}

function internalIP(node: DemoObject): string {
  return textAt(listAt(node, 'status.addresses')[0], 'address') || '<none>'
}

function servicePorts(service: DemoObject): string {
  const ports = listAt(service, 'spec.ports').map(
    (one) => `${numberAt(one, 'port')}/${textAt(one, 'protocol') || 'TCP'}`,
  )
  return ports.join(',') || '<none>'
}

function dataCount(object: DemoObject): number {
  return Object.keys(valueAt(object, 'data') ?? {}).length
}
