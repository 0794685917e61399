import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { findConflicts } from '../../../api/upstream-cluster/cluster-conflicts.ts'
import type { UpstreamCluster } from '../../../api/upstream-cluster/upstream-cluster.ts'
import { decideFiles, type FilesDecision } from './decide.ts'
import type { DirectoryReading } from './load.ts'
import type { FoundCluster, LoadedCluster } from './objects.ts'

interface Entry {
  file: string
  name: string
  /** undefined = a broken object. */
  host?: string | undefined
  version?: number
}

function found({ file, name, host, version = 0 }: Entry, index: number): FoundCluster {
  const line = index + 1
  const object: UpstreamCluster = {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name },
    spec: { servers: [], dispatchPolicies: [], secureServing: { serverNames: host === undefined ? [] : [host] } },
  }
  const loaded = { object, revision: `${name} ${host} ${version}`, file, line }
  return {
    name,
    source: { file, line, value: object, lineOf: () => line },
    loaded: host === undefined ? undefined : loaded,
  }
}

function reading(entries: readonly Entry[], brokenFiles: readonly string[] = []): DirectoryReading {
  const clusters = entries.map(found)
  return { clusters, problems: [], brokenFiles: new Set(brokenFiles), signature: '', directories: new Set() }
}

const never = (): boolean => false
const always = (): boolean => true

/** `name host` of each cluster in force. */
function hosts({ clusters }: FilesDecision): string[] {
  return [...clusters.values()]
    .map(({ object }) => `${object.metadata.name} ${object.spec.secureServing?.serverNames}`)
    .sort((a, b) => (a < b ? -1 : 1))
}

function messages({ problems }: FilesDecision): string[] {
  return problems.map(({ file, line, path, message }) => `${file}:${line} ${path}: ${message}`)
}

const NOTHING = decideFiles(reading([]), new Map(), always)

function after(
  previous: FilesDecision,
  entries: readonly Entry[],
  broken: readonly string[] = [],
  mayVanish = always,
): FilesDecision {
  return decideFiles(reading(entries, broken), previous.clusters, mayVanish)
}

const A: Entry = { file: 'a', name: 'a', host: 'x' }
const B: Entry = { file: 'b', name: 'b', host: 'y' }

test('a broken cluster keeps its last good version', () => {
  const first = after(NOTHING, [A, B])
  const broken = after(first, [
    { ...A, host: undefined },
    { ...B, host: 'z' },
  ])
  assert.deepEqual([hosts(broken), [...broken.kept]], [['a x', 'b z'], ['a']])
  const unreadable = after(first, [B], ['a'])
  assert.deepEqual([hosts(unreadable), [...unreadable.kept]], [['a x', 'b y'], ['a']])
  assert.deepEqual(hosts(after(NOTHING, [{ ...A, host: undefined }])), [])
})

test('a cluster that is renamed by accident stays', () => {
  const renamed = after(after(NOTHING, [A, { ...B, file: 'a' }]), [{ ...A, name: 'A', host: undefined }])
  assert.deepEqual([hosts(renamed), renamed.vanishing.size], [['a x', 'b y'], 0])
})

test('a missing cluster stays until it may vanish', () => {
  const first = after(NOTHING, [A, B])
  const held = after(first, [B], [], never)
  assert.deepEqual([hosts(held), [...held.vanishing]], [['a x', 'b y'], ['a']])
  assert.deepEqual(hosts(after(held, [B])), ['b y'])
})

test('the first by file and line has a claim, unless another has it already', () => {
  const taken = { ...B, host: 'x' }
  const start = after(NOTHING, [A, taken])
  assert.deepEqual(hosts(start), ['a x'])
  assert.deepEqual(messages(start), [
    'b:2 spec.secureServing.serverNames[0]: UpstreamCluster "b" claims host name "x", which "a" (a:1) has',
  ])
  const later = after(after(NOTHING, [taken]), [A, taken])
  assert.deepEqual(hosts(later), ['b x'])
  assert.equal(later.problems[0]?.file, 'a')
})

test('a cluster that loses a new claim keeps its last good version, and with it the old claims', () => {
  const first = after(NOTHING, [A, B])
  const both = after(first, [{ ...A, host: 'y' }, B, { file: 'c', name: 'c', host: 'x' }])
  assert.deepEqual(hosts(both), ['a x', 'b y'])
  assert.deepEqual([...both.kept], ['a'])
  assert.deepEqual(
    both.problems.map(({ file }) => file),
    ['a', 'c'],
  )
})

test('two clusters may swap hosts in one change', () => {
  const swapped = after(after(NOTHING, [A, B]), [
    { ...A, host: 'y' },
    { ...B, host: 'x' },
  ])
  assert.deepEqual([hosts(swapped), swapped.problems], [['a y', 'b x'], []])
})

test('a host moves to a new cluster when the old one is gone, without a false alarm', () => {
  const first = after(NOTHING, [A])
  const successor = { file: 'b', name: 'b', host: 'x' }
  const held = after(first, [successor], [], never)
  assert.deepEqual([hosts(held), held.problems], [['a x'], []])
  assert.deepEqual(hosts(after(held, [successor])), ['b x'])
})

test('a name that is defined twice belongs to the file that has it', () => {
  const copy = { ...A, file: 'c', host: 'z' }
  const start = after(NOTHING, [A, copy])
  assert.deepEqual(hosts(start), ['a x'])
  assert.deepEqual(messages(start), ['c:2 metadata.name: UpstreamCluster "a" is defined in a:1 too'])
  assert.deepEqual(hosts(after(after(NOTHING, [copy]), [A, copy])), ['a z'])
  const moved = after(start, [copy])
  assert.deepEqual([hosts(moved), moved.problems], [['a z'], []])
})

test('in any order of events: no conflicts in force, nothing lost, and good files are what is in force', () => {
  const entry = fc.record({
    file: fc.constantFrom('a', 'b', 'c'),
    name: fc.constantFrom('p', 'q', 'r'),
    host: fc.option(fc.constantFrom('x', 'y', 'z'), { nil: undefined }),
    version: fc.nat(1),
  })
  const step = fc.tuple(fc.array(entry, { maxLength: 4 }), fc.subarray(['a', 'b', 'c']), fc.boolean())
  fc.assert(
    fc.property(fc.array(step, { maxLength: 8 }), (steps) => {
      let inForce: ReadonlyMap<string, LoadedCluster> = new Map()
      for (const [entries, broken, vanish] of steps) {
        const next = decideFiles(reading(entries, broken), inForce, () => vanish)
        assert.deepEqual(
          findConflicts(
            [...next.clusters.values()].map(({ object }) => object),
            never,
          ),
          [],
        )
        for (const [name, last] of inForce) {
          const gone = !entries.some((one) => one.name === name) && !broken.includes(last.file)
          if (!gone || !vanish) assert.ok(next.clusters.has(name), `${name} was lost`)
        }
        for (const name of next.vanishing) assert.ok(!vanish && next.clusters.has(name))
        const noTrouble = next.problems.length === 0 && next.vanishing.size === 0 && broken.length === 0
        if (noTrouble && entries.every((one) => one.host !== undefined)) {
          assert.deepEqual(new Set(hosts(next)), new Set(entries.map(({ name, host }) => `${name} ${host}`)))
        }
        inForce = next.clusters
      }
    }),
    { numRuns: 1000 },
  )
})
