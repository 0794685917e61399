// The columns of pods (kubernetes/pkg/printers/internalversion/printers.go, printPod).

import { listOf, recordOf, recordsOf, textOf } from '../../../kit/api/json/object-shape.ts'
import { humanDuration, parseRfc3339 } from '../../../kube/core/tables/ages.ts'
import {
  AGE_COLUMN,
  at,
  type Cell,
  hasCondition,
  isDeleted,
  NAME_COLUMN,
  numberOf,
  objectName,
  type PrintedColumn,
  type PrintedObject,
  type Printer,
  tableColumn,
  textCell,
  wideColumn,
} from './printer.ts'

/** What several columns show of the containers. */
interface PodState {
  readonly ready: number
  readonly total: number
  readonly reason: string
  readonly restarts: number
  /** undefined = none was restarted. */
  readonly restartedMs: number | undefined
}

/** They share what is found out of the containers. */
const OF_STATE: readonly PrintedColumn[] = ['Ready', 'Status', 'Restarts'].map((name) => tableColumn(name, () => null))
const OTHERS: readonly PrintedColumn[] = [
  AGE_COLUMN,
  wideColumn('IP', (pod) => textOf(recordsOf(at(pod, 'status.podIPs'))[0]?.['ip']) || '<none>'),
  wideColumn('Node', textCell('spec.nodeName', '<none>')),
  wideColumn('Nominated Node', textCell('status.nominatedNodeName', '<none>')),
  wideColumn('Readiness Gates', readinessGates),
]

export const POD_PRINTER: Printer = {
  columns: [NAME_COLUMN, ...OF_STATE, ...OTHERS].map((one) => one.column),
  cells(pod, nowMs) {
    const { ready, total, reason, restarts, restartedMs } = stateOf(pod)
    const ago = restarts > 0 && restartedMs !== undefined ? ` (${humanDuration(nowMs - restartedMs)} ago)` : ''
    const others = OTHERS.map(({ cell }) => cell(pod, nowMs))
    return [objectName(pod, nowMs), `${ready}/${total}`, reason, `${restarts}${ago}`, ...others]
  },
  conditions: (pod) => OVER.get(textOf(at(pod, 'status.phase'))),
}

const OVER: ReadonlyMap<string, readonly object[]> = new Map([
  ['Succeeded', completed('Succeeded', 'The pod has completed successfully.')],
  ['Failed', completed('Failed', 'The pod failed.')],
])

function completed(reason: string, message: string): readonly object[] {
  return [{ type: 'Completed', status: 'True', reason, message }]
}

function readinessGates(pod: PrintedObject): Cell {
  const gates = recordsOf(at(pod, 'spec.readinessGates'))
  if (gates.length === 0) return '<none>'
  const open = gates.filter((gate) => hasCondition(pod, textOf(gate['conditionType']), 'True'))
  return `${open.length}/${gates.length}`
}

function stateOf(pod: PrintedObject): PodState {
  const begun = initState(pod)
  const state = begun.isOver || hasCondition(pod, 'Initialized', 'True') ? runState(pod, begun) : begun.state
  const total = listOf(at(pod, 'spec.containers')).length + begun.sidecars
  return { ...state, total, reason: deletedAs(pod) ?? state.reason }
}

type Containers = Omit<PodState, 'total'>

interface InitState {
  readonly state: Containers
  /** All init containers have ended, or run beside the others. */
  readonly isOver: boolean
  /** Init containers that run beside the others. */
  readonly sidecars: number
  readonly ofSidecars: Pick<Containers, 'restarts' | 'restartedMs'>
}

function phaseOf(pod: PrintedObject): string {
  const isGated = recordsOf(at(pod, 'status.conditions')).some(
    ({ type, reason }) => type === 'PodScheduled' && reason === 'SchedulingGated',
  )
  if (isGated) return 'SchedulingGated'
  return textOf(at(pod, 'status.reason')) || textOf(at(pod, 'status.phase'))
}

function initState(pod: PrintedObject): InitState {
  const wanted = recordsOf(at(pod, 'spec.initContainers'))
  const sidecars = new Set(wanted.filter((one) => one['restartPolicy'] === 'Always').map(({ name }) => name))
  let all: InitState['ofSidecars'] = NO_RESTARTS
  let ofSidecars: InitState['ofSidecars'] = NO_RESTARTS
  let ready = 0
  const count = sidecars.size
  for (const [index, container] of recordsOf(at(pod, 'status.initContainerStatuses')).entries()) {
    const isSidecar = sidecars.has(container['name'])
    all = restartedToo(all, container)
    if (isSidecar) ofSidecars = restartedToo(ofSidecars, container)
    const { waiting, terminated } = statesOf(container)
    if (terminated !== undefined && numberOf(terminated['exitCode']) === 0) continue
    if (isSidecar && container['started'] === true) {
      if (container['ready'] === true) ready++
      continue
    }
    const why = textOf(waiting?.['reason'])
    let reason = `Init:${index}/${wanted.length}`
    if (terminated !== undefined) reason = `Init:${endOf(terminated)}`
    else if (why !== '' && why !== 'PodInitializing') reason = `Init:${why}`
    return { state: { ready, reason, ...all }, isOver: false, sidecars: count, ofSidecars }
  }
  return { state: { ready, reason: phaseOf(pod), ...all }, isOver: true, sidecars: count, ofSidecars }
}

function runState(pod: PrintedObject, { state, ofSidecars }: InitState): Containers {
  let { ready, reason } = state
  let restarted = ofSidecars
  let isRunning = false
  let failure = ''
  for (const container of [...recordsOf(at(pod, 'status.containerStatuses'))].reverse()) {
    restarted = restartedToo(restarted, container)
    const { waiting, running, terminated } = statesOf(container)
    const why = textOf(waiting?.['reason'])
    if (why !== '') reason = why
    else if (terminated !== undefined) {
      reason = endOf(terminated)
      if (numberOf(terminated['exitCode']) !== 0) failure = reason
    } else if (container['ready'] === true && running !== undefined) {
      isRunning = true
      ready++
    }
  }
  // Some have ended, and others may still run.
  if (reason === 'Completed') {
    if (isRunning && hasCondition(pod, 'Ready', 'True')) reason = 'Running'
    else if (failure !== '') reason = failure
    else if (isRunning) reason = 'NotReady'
  }
  return { ready, reason, ...restarted }
}

function deletedAs(pod: PrintedObject): string | undefined {
  if (!isDeleted(pod)) return undefined
  if (at(pod, 'status.reason') === 'NodeLost') return 'Unknown'
  const phase = at(pod, 'status.phase')
  return phase === 'Failed' || phase === 'Succeeded' ? undefined : 'Terminating'
}

const NO_RESTARTS: InitState['ofSidecars'] = { restarts: 0, restartedMs: undefined }

function restartedToo(
  { restarts, restartedMs }: InitState['ofSidecars'],
  container: PrintedObject,
): InitState['ofSidecars'] {
  const endedMs = parseRfc3339(at(container, 'lastState.terminated.finishedAt'))
  const isLater = endedMs !== undefined && (restartedMs === undefined || restartedMs < endedMs)
  return { restarts: restarts + numberOf(container['restartCount']), restartedMs: isLater ? endedMs : restartedMs }
}

/** As which a container has ended. */
function endOf(terminated: PrintedObject): string {
  const signal = numberOf(terminated['signal'])
  return (
    textOf(terminated['reason']) || (signal === 0 ? `ExitCode:${numberOf(terminated['exitCode'])}` : `Signal:${signal}`)
  )
}

type StateOf = Readonly<Record<'waiting' | 'running' | 'terminated', PrintedObject | undefined>>

function statesOf({ state }: PrintedObject): StateOf {
  const of = (key: string): PrintedObject | undefined => {
    const value = recordOf(state)[key]
    return value === undefined || value === null ? undefined : recordOf(value)
  }
  return { waiting: of('waiting'), running: of('running'), terminated: of('terminated') }
}
