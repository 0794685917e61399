// `node bench/protection/batches.ts`: what admissions cost the store. 10,000 deletions that come evenly over 5 s go through the ledger
// into PodProtectors of the embedded API server (its registry, a SQLite store with fsync): first all of one protector, then spread
// over 200. Prints writes, and how long a verdict takes. Ends with 1 when one protector costs 100 writes or more.

import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { openSqliteStore } from '../../src/apiserver/io/store/store.ts'
import { createInProcessClient } from '../../src/apiserver/registry/in-process-client.ts'
import { Registry } from '../../src/apiserver/registry/registry.ts'
import { CellClocks } from '../../src/gateway/core/clocks/cell-clock.ts'
import type { JsonObject } from '../../src/kit/api/json/json-object.ts'
import { systemClock } from '../../src/kit/io/world/clock.ts'
import { NAMESPACES } from '../../src/kube/api/kinds/namespace-kind.ts'
import type { ObjectClient } from '../../src/kube/api/object-client.ts'
import { nodePemChecks } from '../../src/pki/io/pem-checks.ts'
import { DEFAULT_PROTECTION_SETTINGS } from '../../src/process/api/protection-settings.ts'
import { SCHEME } from '../../src/program/api/scheme.ts'
import { POD_PROTECTORS } from '../../src/protection/api/pod-protector-kind.ts'
import type { ProtectionRequest } from '../../src/protection/api/protection.ts'
import { type ProtectionLedger, startProtectionLedger } from '../../src/protection/controllers/ledger/ledger.ts'
import type { BatchResult } from '../../src/protection/core/requests/protection-events.ts'
import { NO_PROTECTION_EVENTS } from '../../test/harness/objects/ignored-events.ts'

const DELETIONS = 10_000
const SPREAD_MS = 5_000
const MANY = 200
const GOAL = 100
const NAMESPACE = 'bench'
const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }

interface Measured {
  readonly results: ReadonlyMap<BatchResult, number>
  readonly refused: number
  /** Sorted, ms. */
  readonly tookMs: readonly number[]
  readonly cpuMs: number
}

function protectorOf(index: number, available: number): JsonObject {
  const replicas = { totalReplicas: available, availableReplicas: available }
  const counts = { ...replicas, readyReplicas: available, scheduledReplicas: available, runningReplicas: available }
  const summary = {
    totalReplicas: available,
    aggregatedAvailableReplicas: available,
    estimatedAvailableReplicas: available,
  }
  return {
    apiVersion: 'podseidon.kubewharf.io/v1alpha1',
    kind: 'PodProtector',
    metadata: { name: `web-${index}`, namespace: NAMESPACE },
    spec: { minAvailable: 1, minReadySeconds: 0, selector: { matchLabels: { app: `web-${index}` } } },
    status: { cells: [{ cellID: 'east', aggregation: counts }], summary },
  }
}

function requestOf(index: number, protectors: number): ProtectionRequest {
  const states = {
    terminating: false,
    scheduled: true,
    running: true,
    ready: true,
    readySinceMs: 1,
    startedMs: 1,
    createdMs: 1,
    readyWrittenMs: 1,
  }
  const labels = { app: `web-${index % protectors}`, 'pod-template-hash': '7d8f9c6b5' }
  const names = { namespace: NAMESPACE, name: `web-${index}`, uid: randomUUID(), resourceVersion: String(index + 1) }
  return {
    cell: 'east',
    cause: 'DeletePod',
    via: 'filter',
    pod: { ...names, ...states, labels, forceDelete: false, criterion: 'Available' },
    criterion: undefined,
    user: 'bench',
    dryRun: false,
    shadow: false,
    timeoutMs: 10_000,
  }
}

async function create(client: ObjectClient, protectors: number): Promise<void> {
  await client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } })
  for (let i = 0; i < protectors; i++) {
    const object = protectorOf(i, DELETIONS * 2)
    const created = await client.create(POD_PROTECTORS, object)
    await client.update(POD_PROTECTORS, { ...created, status: object['status'] }, 'status')
  }
}

async function send(ledger: ProtectionLedger, protectors: number): Promise<Pick<Measured, 'refused' | 'tookMs'>> {
  const tookMs: number[] = []
  const verdicts: Promise<boolean>[] = []
  const startMs = performance.now()
  while (verdicts.length < DELETIONS) {
    const due = Math.min(DELETIONS, Math.ceil(((performance.now() - startMs) / SPREAD_MS) * DELETIONS))
    while (verdicts.length < due) {
      const sentMs = performance.now()
      const review = ledger.review([requestOf(verdicts.length, protectors)]).then(([verdict]) => {
        tookMs.push(performance.now() - sentMs)
        return verdict?.admitted === true
      })
      verdicts.push(review)
    }
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  const refused = (await Promise.all(verdicts)).filter((admitted) => !admitted).length
  return { refused, tookMs: tookMs.sort((a, b) => a - b) }
}

async function measure(protectors: number): Promise<Measured> {
  const directory = mkdtempSync(join(tmpdir(), 'portcullis-batches-'))
  const store = openSqliteStore({ file: join(directory, 'store.db'), key: randomBytes(32) })
  const parts = { now: Date.now, uuid: randomUUID, random: Math.random }
  const client = createInProcessClient(new Registry({ ...parts, store, kinds: SCHEME, pem: nodePemChecks }))
  await create(client, protectors)
  const results = new Map<BatchResult, number>()
  const known = Promise.withResolvers<void>()
  const ledger = startProtectionLedger({
    client,
    settings: DEFAULT_PROTECTION_SETTINGS,
    clock: systemClock,
    clocks: new CellClocks(DEFAULT_PROTECTION_SETTINGS.clockSkewMs),
    random: Math.random,
    log: silent,
    events: {
      ...NO_PROTECTION_EVENTS,
      executed: (_key, _size, result) => void results.set(result, (results.get(result) ?? 0) + 1),
    },
    onNamespaces: () => known.resolve(),
  })
  await known.promise
  const before = process.cpuUsage()
  const sent = await send(ledger, protectors)
  const { user, system } = process.cpuUsage(before)
  await ledger.stop()
  store.close()
  rmSync(directory, { recursive: true })
  return { ...sent, results, cpuMs: (user + system) / 1000 }
}

let ok = true
for (const protectors of [1, MANY]) {
  const { results, refused, tookMs, cpuMs } = await measure(protectors)
  const at = (part: number): string => `${(tookMs[Math.floor(tookMs.length * part)] ?? 0).toFixed(1)} ms`
  const writes = results.get('written') ?? 0
  const others = [...results].filter(([result]) => result !== 'written').map(([result, count]) => `${result} ${count}`)
  if (refused > 0 || (protectors === 1 && writes >= GOAL)) ok = false
  console.log(
    `${DELETIONS} deletions in ${SPREAD_MS / 1000} s, ${protectors} protector(s): ${writes} status updates` +
      `${others.length === 0 ? '' : ` (${others.join(', ')})`}, ${refused} refused; ` +
      `a verdict takes ${at(0.5)} (p50), ${at(0.99)} (p99); ${(cpuMs / 1000).toFixed(2)} s of CPU`,
  )
}
console.log(ok ? `goal met: fewer than ${GOAL} updates of one protector` : 'goal missed')
process.exitCode = ok ? 0 : 1
