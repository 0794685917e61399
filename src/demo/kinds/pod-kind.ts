// Pod (v1): its columns, its grace period, its log and its eviction.

import { isTrue } from '../../gateway/core/request/list-options.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { type JsonSchema, list, text, wholeNumber } from '../../kit/api/json/json-schema.ts'
import { sameJson } from '../../kit/core/text/same-json.ts'
import { PODS as NAMED } from '../../kube/api/kinds/foreign-kinds.ts'
import type { ConnectAnswer, ConnectCall, KindSubresource, ResourceKind } from '../../kube/api/resource-kind.ts'
import { statusError } from '../../kube/api/status.ts'
import { listAt, numberAt, objectAt, textAt, valueAt } from './json.ts'
import { AGE, column, listBy, named, openKind, openObject, statusWith, textColumn } from './rows.ts'

const port = openObject('A port of the container.', {
  containerPort: wholeNumber('Its number.'),
  protocol: text('TCP, UDP or SCTP.', { default: 'TCP' }),
})

const container = named('A container.', {
  image: text('What it runs.'),
  command: list('Instead of the entrypoint of the image.', text('A word.')),
  args: list('Arguments of the command.', text('A word.')),
  ports: listBy(['containerPort', 'protocol'], 'Ports that it listens on.', port),
  env: listBy(['name'], 'Environment variables.', named('A variable.')),
  volumeMounts: listBy(
    ['mountPath'],
    'Where volumes are mounted.',
    openObject('A mount.', { mountPath: text('The path.') }),
  ),
})

/** For pods and pod templates. */
export const POD_SPEC: JsonSchema = openObject('What runs, and where.', {
  containers: listBy(['name'], 'What runs side by side.', container),
  initContainers: listBy(['name'], 'What runs before.', container),
  volumes: listBy(['name'], 'What containers can mount.', named('A volume.')),
  imagePullSecrets: listBy(['name'], 'By which images are fetched.', named('A Secret.')),
  nodeName: text('The node that it runs on.'),
  restartPolicy: text('Always, OnFailure or Never.', { default: 'Always' }),
  terminationGracePeriodSeconds: wholeNumber('Seconds that containers have to stop.', 'int64'),
})

/** Default of a pod (core/v1 defaults). */
const GRACE_SECONDS = 30

export const DEMO_PODS: ResourceKind = {
  ...NAMED,
  shortNames: ['po'],
  categories: ['all'],
  subresources: [
    { name: 'eviction', group: 'policy', version: 'v1', kind: 'Eviction', methods: ['POST'], connect: evict },
    { name: 'log', group: '', version: 'v1', kind: 'Pod', methods: ['GET'], connect: answerLog },
    ...['exec', 'attach', 'portforward'].map(needsKubelet),
  ],
  schema: openKind('Pod is what runs on a node, as the demo knows it.', 'v1', 'Pod', {
    spec: POD_SPEC,
    status: statusWith(),
  }),
  columns: [
    column('Ready', readyContainers),
    column('Status', podStatus),
    column('Restarts', restarts, 'integer'),
    AGE,
    textColumn('IP', 'status.podIP', 1),
    textColumn('Node', 'spec.nodeName', 1),
  ],
  selectableFields: [
    'spec.nodeName',
    'spec.restartPolicy',
    'spec.schedulerName',
    'spec.serviceAccountName',
    'status.phase',
    'status.podIP',
  ],
  prepare: (pod) => ({ ...pod, status: { phase: 'Pending' } }),
  // A pod that no kubelet has started is removed at once.
  gracePeriod(pod, asked) {
    if (textAt(pod, 'spec.nodeName') === '') return 0
    return asked ?? numberAt(pod, 'spec.terminationGracePeriodSeconds', GRACE_SECONDS)
  },
}

export function isEnding(pod: JsonObject): boolean {
  return valueAt(pod, 'metadata.deletionTimestamp') !== undefined
}

export function isPodReady(pod: JsonObject): boolean {
  const statuses = listAt(pod, 'status.containerStatuses')
  return statuses.length > 0 && statuses.every((status) => valueAt(status, 'ready') === true)
}

function readyContainers(pod: JsonObject): string {
  const ready = listAt(pod, 'status.containerStatuses').filter((status) => valueAt(status, 'ready') === true)
  return `${ready.length}/${listAt(pod, 'spec.containers').length}`
}

function podStatus(pod: JsonObject): string {
  if (isEnding(pod)) return 'Terminating'
  const waiting = listAt(pod, 'status.containerStatuses').map((status) => textAt(status, 'state.waiting.reason'))
  return waiting.find((reason) => reason !== '') ?? (textAt(pod, 'status.phase') || 'Unknown')
}

function restarts(pod: JsonObject): number {
  return listAt(pod, 'status.containerStatuses').reduce<number>((sum, one) => sum + numberAt(one, 'restartCount'), 0)
}

/** policy/v1 Eviction (pkg/registry/core/pod/rest/eviction.go). The demo has no PodDisruptionBudgets. */
function evict({ object, query, body, remove }: ConnectCall): ConnectAnswer {
  const name = textAt(body, 'metadata.name')
  if (name !== '' && name !== textAt(object, 'metadata.name')) {
    throw statusError('BadRequest', 'name in URL does not match name in Eviction object')
  }
  const options = objectAt(body, 'deleteOptions')
  const asked = query.getAll('dryRun')
  const carried = listAt(options, 'dryRun')
  if (asked.length > 0 && carried.length > 0 && !sameJson(asked, carried)) {
    const both = `[${asked.join(' ')}] and [${carried.join(' ')}]`
    throw statusError('BadRequest', `Non-matching dry-run options in request and content: ${both}`)
  }
  remove(carried.length > 0 ? options : { ...options, dryRun: asked })
  return { code: 201, body: { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 } }
}

const LOG_LINES = 5
const LOG_INTERVAL_MS = 1000

/** Some meaningless lines; with `follow` one more each second. */
function answerLog({ object, query }: ConnectCall): ConnectAnswer {
  const name = textAt(object, 'metadata.name')
  const line = (atMs: number): string => `${new Date(atMs).toISOString()} ${name} served requests: ok\n`
  const nowMs = Date.now()
  let body = ''
  for (let ago = tailLines(query); ago > 0; ago--) body += line(nowMs - ago * LOG_INTERVAL_MS)
  const previous = query.get('previous') ?? undefined
  if (!isTrue(query.get('follow') ?? undefined) || isTrue(previous)) return { code: 200, body }
  return {
    code: 200,
    body,
    follow(write) {
      const timer = setInterval(() => write(line(Date.now())), LOG_INTERVAL_MS)
      return () => clearInterval(timer)
    },
  }
}

/** PodLogOptions.tailLines: maximum number of lines. */
function tailLines(query: URLSearchParams): number {
  const asked = query.get('tailLines')
  if (asked === null || asked === '') return LOG_LINES
  if (!/^\d+$/.test(asked))
    throw statusError('BadRequest', `tailLines: ${JSON.stringify(asked)} is not a number of lines`)
  return Math.min(Number(asked), LOG_LINES)
}

function needsKubelet(name: string): KindSubresource {
  return {
    name,
    group: '',
    version: 'v1',
    kind: 'Pod',
    methods: ['GET', 'POST'],
    connect() {
      throw statusError('BadRequest', `the demo has no kubelet that could serve ${name}`)
    },
  }
}
