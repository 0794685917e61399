// The Services of deploy/vip are what a kube-apiserver takes, with strict validation.

import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { after, before, test } from 'node:test'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'

const VIP_DIR = resolve(import.meta.dirname, '../../deploy/vip')
let cluster: TestCluster

before(async () => {
  cluster = await startCluster({ name: 'vip' })
  assert.equal((await cluster.kubectl(['create', 'namespace', 'portcullis-system'])).code, 0)
})
after(() => cluster?.stop())

test('a server-side dry run takes each Service', async () => {
  const files = readdirSync(VIP_DIR).filter((file) => file.startsWith('service-'))
  assert.ok(files.length > 0)
  for (const file of files) {
    const args = ['apply', '--dry-run=server', '--validate=strict', '-f', join(VIP_DIR, file)]
    const { code, stdout, stderr } = await cluster.kubectl(args)
    assert.deepEqual([code, stdout], [0, 'service/portcullis created (server dry run)\n'], `${file}: ${stderr}`)
  }
})
