// The columns of what runs pods, and of what says how many (kubernetes/pkg/printers/internalversion/printers.go).

import { recordOf, recordsOf, textOf } from '../../../kit/api/json/object-shape.ts'
import { ageOf, humanDuration, parseRfc3339 } from '../../../kube/core/tables/ages.ts'
import {
  AGE_COLUMN,
  at,
  containers,
  countColumn,
  hasCondition,
  isDeleted,
  labelsCell,
  NAME_COLUMN,
  numberCell,
  numberOf,
  type PrintedColumn,
  type PrintedObject,
  type Printer,
  printerOf,
  selectorCell,
  sizeCell,
  tableColumn,
  textCell,
  wideColumn,
  writtenOf,
} from './printer.ts'

const TEMPLATE = containers('spec.template')
const SELECTOR = wideColumn('Selector', selectorCell('spec.selector', '<none>', '<error>'))

function replicas(...last: readonly PrintedColumn[]): Printer {
  return printerOf(
    NAME_COLUMN,
    countColumn('Desired', numberCell('spec.replicas')),
    countColumn('Current', numberCell('status.replicas')),
    countColumn('Ready', numberCell('status.readyReplicas')),
    AGE_COLUMN,
    ...TEMPLATE,
    ...last,
  )
}

const READY = tableColumn('Ready', (object) => {
  return `${numberOf(at(object, 'status.readyReplicas'))}/${numberOf(at(object, 'spec.replicas'))}`
})

/** By resource and group. */
export const WORKLOAD_PRINTERS: Readonly<Record<string, Printer>> = {
  podtemplates: printerOf(
    NAME_COLUMN,
    ...containers('template').map(({ column: { name }, cell }) => tableColumn(name, cell)),
    tableColumn('Pod Labels', labelsCell('template.metadata.labels')),
  ),
  replicationcontrollers: replicas(wideColumn('Selector', labelsCell('spec.selector'))),
  'replicasets.apps': replicas(SELECTOR),
  'deployments.apps': printerOf(
    NAME_COLUMN,
    READY,
    tableColumn('Up-to-date', numberCell('status.updatedReplicas')),
    tableColumn('Available', numberCell('status.availableReplicas')),
    AGE_COLUMN,
    ...TEMPLATE,
    wideColumn('Selector', selectorCell('spec.selector', '', '<invalid>')),
  ),
  'statefulsets.apps': printerOf(NAME_COLUMN, READY, AGE_COLUMN, ...TEMPLATE),
  'daemonsets.apps': printerOf(
    NAME_COLUMN,
    countColumn('Desired', numberCell('status.desiredNumberScheduled')),
    countColumn('Current', numberCell('status.currentNumberScheduled')),
    countColumn('Ready', numberCell('status.numberReady')),
    countColumn('Up-to-date', numberCell('status.updatedNumberScheduled')),
    countColumn('Available', numberCell('status.numberAvailable')),
    tableColumn('Node Selector', labelsCell('spec.template.spec.nodeSelector')),
    AGE_COLUMN,
    ...TEMPLATE,
    SELECTOR,
  ),
  'controllerrevisions.apps': printerOf(
    NAME_COLUMN,
    tableColumn('Controller', controllerOf),
    tableColumn('Revision', numberCell('revision')),
    AGE_COLUMN,
  ),
  'jobs.batch': printerOf(
    NAME_COLUMN,
    tableColumn('Status', statusOfJob),
    tableColumn('Completions', completions),
    tableColumn('Duration', durationOfJob),
    AGE_COLUMN,
    ...TEMPLATE,
    SELECTOR,
  ),
  'cronjobs.batch': printerOf(
    NAME_COLUMN,
    tableColumn('Schedule', textCell('spec.schedule')),
    tableColumn('Timezone', textCell('spec.timeZone', '<none>')),
    tableColumn('Suspend', suspended, { type: 'boolean' }),
    countColumn('Active', sizeCell('status.active')),
    tableColumn('Last Schedule', lastSchedule),
    AGE_COLUMN,
    ...containers('spec.jobTemplate.spec.template'),
    wideColumn('Selector', selectorCell('spec.jobTemplate.spec.selector', '<none>', '<error>')),
  ),
  'horizontalpodautoscalers.autoscaling': printerOf(
    NAME_COLUMN,
    tableColumn('Reference', (hpa) => namedKind(at(hpa, 'spec.scaleTargetRef'))),
    tableColumn('Targets', targets),
    tableColumn('MinPods', (hpa) => writtenOf(at(hpa, 'spec.minReplicas'), '<unset>')),
    tableColumn('MaxPods', numberCell('spec.maxReplicas')),
    tableColumn('Replicas', numberCell('status.currentReplicas')),
    AGE_COLUMN,
  ),
  'poddisruptionbudgets.policy': printerOf(
    NAME_COLUMN,
    tableColumn('Min Available', (pdb) => writtenOf(at(pdb, 'spec.minAvailable'), 'N/A')),
    tableColumn('Max Unavailable', (pdb) => writtenOf(at(pdb, 'spec.maxUnavailable'), 'N/A')),
    countColumn('Allowed Disruptions', numberCell('status.disruptionsAllowed')),
    AGE_COLUMN,
  ),
}

/** The owner that manages it. */
function controllerOf(object: PrintedObject): string {
  const owner = recordsOf(at(object, 'metadata.ownerReferences')).find(({ controller }) => controller === true)
  if (owner === undefined) return '<none>'
  const [group, version] = textOf(owner['apiVersion']).split('/')
  const kind = textOf(owner['kind'])
  return `${(version === undefined ? kind : `${kind}.${group}`).toLowerCase()}/${textOf(owner['name'])}`
}

function statusOfJob(job: PrintedObject): string {
  const is = (type: string): boolean => hasCondition(job, type, 'True')
  // The first of these counts.
  const end = ['Complete', 'Failed'].find(is) ?? (isDeleted(job) ? 'Terminating' : undefined)
  return end ?? ['Suspended', 'FailureTarget', 'SuccessCriteriaMet'].find(is) ?? 'Running'
}

function completions(job: PrintedObject): string {
  const succeeded = numberOf(at(job, 'status.succeeded'))
  const wanted = at(job, 'spec.completions')
  if (typeof wanted === 'number') return `${succeeded}/${wanted}`
  const parallelism = numberOf(at(job, 'spec.parallelism'))
  return parallelism > 1 ? `${succeeded}/1 of ${parallelism}` : `${succeeded}/1`
}

function durationOfJob(job: PrintedObject, nowMs: number): string {
  const startMs = parseRfc3339(at(job, 'status.startTime'))
  if (startMs === undefined) return ''
  return humanDuration((parseRfc3339(at(job, 'status.completionTime')) ?? nowMs) - startMs)
}

function suspended(job: PrintedObject): string {
  const suspend = at(job, 'spec.suspend')
  if (typeof suspend !== 'boolean') return '<unset>'
  return suspend ? 'True' : 'False'
}

function lastSchedule(job: PrintedObject, nowMs: number): string {
  const time = at(job, 'status.lastScheduleTime')
  return time === undefined || time === null ? '<none>' : ageOf(time, nowMs)
}

function namedKind(reference: unknown): string {
  const { kind, name } = recordOf(reference)
  return `${textOf(kind)}/${textOf(name)}`
}

const MOST_METRICS = 2

function targets(hpa: PrintedObject): string {
  const current = recordsOf(at(hpa, 'status.currentMetrics'))
  const metrics = recordsOf(at(hpa, 'spec.metrics')).map((metric, index) => targetOf(metric, current[index]))
  const ofVersion1 = at(hpa, 'spec.targetCPUUtilizationPercentage')
  if (typeof ofVersion1 === 'number') {
    const used = at(hpa, 'status.currentCPUUtilizationPercentage')
    metrics.unshift(`cpu: ${percent(used, '<unknown>')}/${ofVersion1}%`)
  }
  if (metrics.length === 0) return '<none>'
  const shown = metrics.slice(0, MOST_METRICS).join(', ')
  return metrics.length > MOST_METRICS ? `${shown} + ${metrics.length - MOST_METRICS} more...` : shown
}

/** Where a metric of each type has what is measured. */
const METRICS: Readonly<Record<string, string>> = {
  External: 'external',
  Object: 'object',
  Pods: 'pods',
  Resource: 'resource',
  ContainerResource: 'containerResource',
}

function targetOf(metric: PrintedObject, current: PrintedObject | undefined): string {
  const type = textOf(metric['type'])
  const key = METRICS[type]
  if (key === undefined) return '<unknown type>'
  const of = recordOf(metric[key])
  const target = recordOf(of['target'])
  const used = recordOf(at(current, `${key}.current`))
  const average = writtenOf(target['averageValue'], '')
  const usedAverage = writtenOf(used['averageValue'], '<unknown>')
  switch (type) {
    case 'Pods':
      return `${usedAverage}/${average}`
    case 'External':
    case 'Object':
      if (average !== '') return `${usedAverage}/${average} (avg)`
      return `${writtenOf(used['value'], '<unknown>')}/${writtenOf(target['value'], '')}`
    default:
      if (average !== '') return `${textOf(of['name'])}: ${usedAverage}/${average}`
      return `${textOf(of['name'])}: ${percent(used['averageUtilization'], '<unknown>')}/${percent(target['averageUtilization'], '<auto>')}`
  }
}

function percent(value: unknown, absent: string): string {
  return typeof value === 'number' ? `${value}%` : absent
}
