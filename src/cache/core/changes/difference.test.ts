import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { compareResourceVersions } from '../../../kube/core/objects/resource-version.ts'
import { differenceOf } from './difference.ts'

interface Thing {
  readonly facts: { readonly uid: string; readonly resourceVersion: string }
}

function things(all: Readonly<Record<string, readonly [uid: string, version: number]>>): Map<string, Thing> {
  return new Map(
    Object.entries(all).map(([key, [uid, version]]) => [key, { facts: { uid, resourceVersion: String(version) } }]),
  )
}

function told(before: Map<string, Thing>, after: Map<string, Thing>, known: number): readonly string[] {
  return differenceOf(before, after, String(known)).map((one) => `${one.type} ${one.key} ${one.resourceVersion}`)
}

test('nothing has happened', () => {
  const all = things({ a: ['1', 5], b: ['2', 7] })
  assert.deepEqual(told(all, all, 10), [])
})

test('changes come in the order of their versions, deletions first, each with a version of its own', () => {
  const before = things({ a: ['1', 5], b: ['2', 6], c: ['3', 7], d: ['4', 8] })
  const after = things({ a: ['1', 19], e: ['5', 12], d: ['4', 8] })
  assert.deepEqual(told(before, after, 10), ['DELETED b 11', 'ADDED e 12', 'DELETED c 13', 'MODIFIED a 19'])
})

test('another object of the same name is a deletion and an addition', () => {
  const before = things({ a: ['1', 5] })
  assert.deepEqual(told(before, things({ a: ['2', 15], b: ['3', 14] }), 10), [
    'DELETED a 13',
    'ADDED b 14',
    'ADDED a 15',
  ])
})

test('any number of objects that were replaced one after the other takes a number of steps that is about theirs', () => {
  const count = 50_000
  const all = (uid: string, from: number): Map<string, Thing> =>
    things(Object.fromEntries(Array.from({ length: count }, (_, at) => [`n${at}`, [`${uid}${at}`, from + at]])))
  const changes = differenceOf(all('a', 1), all('b', 1_000_000), '500000')
  const versions = changes.map(({ resourceVersion }) => Number(resourceVersion))
  assert.equal(new Set(versions).size, 2 * count)
  assert.deepEqual(
    [Math.min(...versions.slice(0, 10)), Math.max(...versions.slice(-10))],
    [1_000_000 - count, 1_000_000 + count - 1],
  )
})

test('whoever resumes between any two changes ends with the list', () => {
  const names = ['a', 'b', 'c', 'd', 'e', 'f']
  const state = (from: number) =>
    fc
      .uniqueArray(fc.record({ name: fc.constantFrom(...names), uid: fc.constantFrom('1', '2') }), {
        selector: ({ name }) => name,
      })
      .chain((all) =>
        fc
          .uniqueArray(fc.integer({ min: from, max: from + 30 }), { minLength: all.length, maxLength: all.length })
          .map((versions) =>
            things(Object.fromEntries(all.map(({ name, uid }, at) => [name, [uid, versions[at] ?? 0]]))),
          ),
      )
  fc.assert(
    fc.property(state(100), state(200), fc.nat(20), (before, after, resumeAt) => {
      const changes = differenceOf(before, after, '150')
      const versions = changes.map(({ resourceVersion }) => resourceVersion)
      assert.equal(new Set(versions).size, versions.length)
      // A client that was cut off behind the change `resumeAt`, and goes on with all that are newer.
      const known = new Map([...before].map(([key, { facts }]) => [key, facts.uid]))
      const apply = (from: number, to: number): void => {
        for (const { type, key, object } of changes.slice(from, to)) {
          if (type === 'DELETED') known.delete(key)
          else known.set(key, object.facts.uid)
        }
      }
      apply(0, resumeAt)
      const last = versions[resumeAt - 1] ?? '0'
      apply(versions.filter((version) => (compareResourceVersions(version, last) ?? 0) <= 0).length, changes.length)
      assert.deepEqual(
        Object.fromEntries(known),
        Object.fromEntries([...after].map(([key, { facts }]) => [key, facts.uid])),
      )
    }),
  )
})
