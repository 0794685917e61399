// What reading the facts of an object costs, beside JSON.parse, and what splitting a list costs. CPU time; `node bench/micro/object-facts.ts`

import { FactsReader } from '../../src/cache/core/bytes/object-facts.ts'
import { ListSplitter } from '../../src/cache/core/bytes/split-list.ts'
import { selectableFields } from '../../src/cache/core/fields/selectable-fields.ts'

const ROUNDS = 20
const BYTES_PER_ROUND = 20_000_000

const reader = new FactsReader(selectableFields({ group: '', version: 'v1', resource: 'pods', namespaced: true }).kept)

function pod(index: number, containers: number, text: string): object {
  const container = {
    name: 'app',
    image: 'registry.example.com/team/app:1.2.3',
    resources: { limits: { cpu: '1', memory: '1Gi' }, requests: { cpu: '100m', memory: '128Mi' } },
    env: Array.from({ length: 10 }, (_, i) => ({ name: `VARIABLE_${i}`, value: `some value of it ${i}` })),
    volumeMounts: [{ name: 'token', readOnly: true, mountPath: '/var/run/secrets/kubernetes.io/serviceaccount' }],
    terminationMessagePath: '/dev/termination-log',
    terminationMessagePolicy: 'File',
    imagePullPolicy: 'IfNotPresent',
  }
  return {
    kind: 'Pod',
    apiVersion: 'v1',
    metadata: {
      name: `app-7d9c6b8f5-${index}`,
      generateName: 'app-7d9c6b8f5-',
      namespace: `team-${index % 50}`,
      uid: '5cdd45ca-300f-4422-93e1-9dee15698d0f',
      resourceVersion: String(123456789 + index),
      creationTimestamp: '2026-11-26T22:47:31Z',
      labels: { app: 'app', 'pod-template-hash': '7d9c6b8f5', tier: 'web' },
      annotations: { text },
      managedFields: [
        { manager: 'm', operation: 'Update', apiVersion: 'v1', fieldsV1: { 'f:metadata': { 'f:labels': {} } } },
      ],
    },
    spec: {
      containers: Array.from({ length: containers }, () => container),
      nodeName: `node-${index % 100}`,
      serviceAccountName: 'default',
      schedulerName: 'default-scheduler',
      restartPolicy: 'Always',
    },
    status: {
      phase: 'Running',
      podIP: '10.0.0.1',
      podIPs: [{ ip: '10.0.0.1' }],
      conditions: [{ type: 'Ready', status: 'True' }],
    },
  }
}

function measure(name: string, bytes: number, read: () => void): void {
  const calls = Math.max(1, Math.round(BYTES_PER_ROUND / bytes))
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < ROUNDS; round++) {
    const before = process.cpuUsage()
    for (let i = 0; i < calls; i++) read()
    const { user, system } = process.cpuUsage(before)
    best = Math.min(best, ((user + system) * 1000) / calls)
  }
  console.log(
    `${name.padEnd(44)} ${(best / 1000).toFixed(1).padStart(9)} us ${(best / bytes).toFixed(2).padStart(6)} ns/byte`,
  )
}

const objects: readonly (readonly [string, Buffer])[] = (
  [
    ['small pod', pod(1, 1, '')],
    ['pod with 8 containers', pod(1, 8, 'a'.repeat(2000))],
    ['1.5 MB in one annotation', pod(1, 1, '{"a":1}\n'.repeat(150_000))],
    ['1.5 MB of env', pod(1, 1400, '')],
  ] satisfies [string, object][]
).map(([name, object]) => [name, Buffer.from(JSON.stringify(object))])

for (const [name, json] of objects) {
  measure(`${name}, ${json.length} bytes: facts`, json.length, () => reader.read(json))
  measure(`${name}: JSON.parse`, json.length, () => JSON.parse(json.toString()))
}

const items = Array.from({ length: 2000 }, (_, index) => pod(index, 2, '')).map((object) => {
  const { kind, apiVersion, ...bare } = object as Record<string, unknown>
  return bare
})
const list = Buffer.from(
  JSON.stringify({ kind: 'PodList', apiVersion: 'v1', metadata: { resourceVersion: '1' }, items }),
)
const CHUNK = 16 * 1024

function split(onObject: (object: Buffer) => void): void {
  const splitter = new ListSplitter({ objectBytes: 2e6, objects: 1e6 }, onObject)
  for (let at = 0; at < list.length; at += CHUNK) splitter.feed(list.subarray(at, at + CHUNK))
  splitter.end()
}

measure(`list of 2,000 pods, ${list.length} bytes: split`, list.length, () => split(() => undefined))
measure('the same, with the facts of each', list.length, () => split((object) => void reader.read(object)))
measure('the same: JSON.parse', list.length, () => JSON.parse(list.toString()))
