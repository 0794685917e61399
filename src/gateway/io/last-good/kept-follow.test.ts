import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { waitFor } from '../../../../test/harness/wait.ts'
import type { Logger } from '../../../kit/api/ports.ts'
import { systemClock } from '../../../kit/io/world/clock.ts'
import type { ResolvedCluster } from '../../api/resource-source.ts'
import { LastGoodFile } from './file.ts'
import { lastGoodKey } from './format.ts'
import { LastGoodKeeper } from './keeper.ts'
import { keptClusters } from './kept-follow.ts'

function cluster(name: string, uid: string): [string, ResolvedCluster] {
  const object = {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name, uid },
    spec: { servers: [], dispatchPolicies: [] },
  } as const
  return [name, { object, revision: '1' }]
}

/** What is logged when the server returns with these clusters, after a start with `prod` and `dev` from disk. */
async function warnings(t: TestContext, ...back: readonly [string, ResolvedCluster][]): Promise<readonly string[]> {
  const dir = mkdtempSync(join(tmpdir(), 'portcullis-kept-'))
  t.after(() => rmSync(dir, { recursive: true }))
  const lines: string[] = []
  const log: Logger = { debug() {}, info() {}, warn: (line) => void lines.push(line), error() {} }
  const file = new LastGoodFile({ dir, name: 'objects', key: lastGoodKey(Buffer.alloc(32)), source: 's', log })
  const records = [cluster('prod', '1'), cluster('dev', '2')].map(([, { object, revision }]) => {
    return file.seal({ kind: 'UpstreamCluster', object, revision })
  })
  await file.write(records, Date.now())
  const keeper = new LastGoodKeeper({ file, name: 'objects', clock: systemClock, log })
  const kept = keptClusters({ keeper, waitMs: () => 0, log, onCurrent: () => undefined })
  assert.equal(kept.restore()?.size, 2)
  kept.keep(new Map(back), undefined)
  // Only once.
  kept.keep(new Map(), undefined)
  return lines
}

test('an API server that comes back with none of the objects served from disk is worth a line', async (t) => {
  assert.deepEqual(await warnings(t, cluster('prod', '1')), [])
  const empty = await warnings(t)
  assert.equal(empty.length, 1)
  assert.deepEqual(await warnings(t, cluster('prod', '7'), cluster('dev', '8')), empty)
  assert.deepEqual(await warnings(t, cluster('staging', '3')), empty)
})

test('which Secrets a version was made from is known after a restart, too', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'portcullis-kept-'))
  t.after(() => rmSync(dir, { recursive: true }))
  const log: Logger = { debug() {}, info() {}, warn() {}, error() {} }
  const file = new LastGoodFile({ dir, name: 'objects', key: lastGoodKey(Buffer.alloc(32)), source: 's', log })
  const keeper = new LastGoodKeeper({ file, name: 'objects', clock: systemClock, log, everyMs: 1 })
  t.after(() => keeper.stop())
  const options = { keeper, waitMs: () => 0, log, onCurrent: () => undefined }
  const [name, version] = cluster('prod', '1')
  const [other, unknown] = cluster('dev', '2')
  const clusters = new Map([
    [name, { ...version, secrets: ['ns/a', 'ns/b'] }],
    [other, unknown],
  ])
  const kept = keptClusters(options)
  kept.keep(clusters, undefined)
  kept.current(true)
  await waitFor('the file', () => keeper.restore()?.records.length === 2)
  assert.deepEqual(keptClusters(options).restore(), clusters)
})
