import assert from 'node:assert/strict'
import { test } from 'node:test'
import { selectableFields } from '../core/fields/selectable-fields.ts'
import type { CachedCollection } from '../state/cached-collection.ts'
import { MOST_REQUIREMENTS, selectionOf } from './selection.ts'

const PODS = {
  fields: selectableFields({ group: '', version: 'v1', resource: 'pods', namespaced: true }),
} as CachedCollection

test('a selector of very many requirements is for the cluster', () => {
  const labels = (count: number): string => Array.from({ length: count }, () => '!a').join()
  const fields = (count: number): string => Array.from({ length: count }, () => 'spec.nodeName!=a').join()
  for (const [labelSelector, fieldSelector, isAnswered] of [
    [labels(MOST_REQUIREMENTS), '', true],
    [labels(MOST_REQUIREMENTS + 1), '', false],
    ['', fields(MOST_REQUIREMENTS), true],
    ['', fields(MOST_REQUIREMENTS + 1), false],
    [labels(MOST_REQUIREMENTS / 2), fields(MOST_REQUIREMENTS / 2 + 1), false],
    ['a>1,a<9,b>1,b<9', '', true],
    ['a>1,a<9,b>1,b<9,c', '', false],
    [`a in (${Array.from({ length: 1000 }, (_, at) => at).join()})`, '', true],
  ] as const) {
    const selects = selectionOf({ labelSelector, fieldSelector }, '', PODS)
    assert.equal(selects !== undefined, isAnswered, `${labelSelector} ${fieldSelector}`)
  }
})
