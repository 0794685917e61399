// A cell of two clusters that both point to the same pods, when one of them reports a pod as deleted.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { CellPods } from './cell-pods.ts'
import { PodSnapshot } from './pod-snapshot.ts'

const SELECTOR = { matchLabels: { app: 'web' } }

function pod(resourceVersion: string, app = 'web'): JsonObject {
  const metadata = { name: 'a', namespace: 'default', uid: 'uid-a', resourceVersion, labels: { app } }
  const conditions = [{ type: 'Ready', status: 'True', lastTransitionTime: '2026-01-02T03:04:05Z' }]
  return { metadata, status: { phase: 'Running', conditions } }
}

function twoClusters() {
  const [east, west] = [new PodSnapshot(() => 0), new PodSnapshot(() => 0)]
  const snapshots = new Map([
    ['east', east],
    ['west', west],
  ])
  const cell = new CellPods(snapshots)
  east.replace([pod('5')])
  west.replace([pod('5')])
  return {
    east,
    west,
    cell,
    versions: () => [...cell.select('default', SELECTOR)].map(({ resourceVersion }) => resourceVersion),
    /** Deleted, or relabeled out of the selection, with this version. */
    gone(name: 'east' | 'west', version: string): void {
      snapshots.get(name)?.change('DELETED', pod(version))
      cell.forget(name, 'uid-a', version)
    },
  }
}

test('gone by one of them: not there, by a version before that or of a list of unknown version', () => {
  const { west, cell, versions, gone } = twoClusters()
  gone('east', '7')
  assert.deepEqual([versions(), cell.get('uid-a')], [[], undefined])
  west.change('MODIFIED', pod('6'))
  assert.deepEqual(versions(), [])
  cell.forget('east', 'uid-a', '')
  west.change('MODIFIED', pod('9'))
  assert.deepEqual(versions(), [])
})

test('gone, and told of again by the same one: there, whatever the version', () => {
  for (const version of ['8', '6']) {
    const { east, west, cell, versions, gone } = twoClusters()
    west.replace([])
    gone('east', '7')
    east.change('ADDED', pod(version))
    assert.deepEqual(versions(), [version])
    assert.equal(cell.get('uid-a')?.resourceVersion, version)
  }
})

test('gone by both: there again by the first that tells of a later version', () => {
  const { east, versions, gone } = twoClusters()
  gone('east', '7')
  gone('west', '7')
  assert.deepEqual(versions(), [])
  east.change('ADDED', pod('8'))
  assert.deepEqual(versions(), ['8'])
})

test('labelled from the selection of one into that of the other: there, by the version of that change', () => {
  const { west, versions, gone } = twoClusters()
  west.replace([])
  gone('east', '7')
  west.change('ADDED', pod('7'))
  assert.deepEqual(versions(), ['7'])
})

test('a list that lacks it, and a watch that tells of it afterwards', () => {
  const { east, cell, versions } = twoClusters()
  for (const known of ['6', '9']) {
    east.replace([], (uid) => cell.forget('east', uid, '6'))
    east.change('ADDED', pod(known))
    assert.ok(versions().includes(known), known)
  }
})
