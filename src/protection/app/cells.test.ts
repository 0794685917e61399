import assert from 'node:assert/strict'
import { test } from 'node:test'
import { distinctClusters } from './cells.ts'

const cluster = (name: string, urls: string, counts = true) => ({ name, urls: urls.split(' '), counts })

test('UpstreamClusters with an endpoint in common are one cluster, and the first that counts stands for it', () => {
  const names = (...clusters: ReturnType<typeof cluster>[]): string => distinctClusters(clusters).join(' ')
  assert.equal(names(), '')
  assert.equal(names(cluster('a', 'x'), cluster('b', 'y')), 'a b')
  assert.equal(names(cluster('a', 'x y'), cluster('b', 'y z')), 'a')
  assert.equal(names(cluster('a', 'x', false), cluster('b', 'x'), cluster('c', 'z', false)), 'b c')
  // The third one shows that the first two are the same cluster.
  assert.equal(names(cluster('a', 'x'), cluster('b', 'y'), cluster('c', 'x y')), 'a')
  assert.equal(names(cluster('a', 'x', false), cluster('b', 'y', false), cluster('c', 'y x')), 'c')
})
