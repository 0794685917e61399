import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitFor } from '../../../test/harness/wait.ts'
import { UPSTREAM_CLUSTERS } from '../../gateway/api/upstream-cluster-kind.ts'
import { SILENT } from '../../kit/api/ports.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import { crdOf } from '../api/crd.ts'
import { CrdInstallation } from './crd-installation.ts'

test('an API server that is away does not fail a start that may go on, and the log says why the CRDs wait', async () => {
  const lines: string[] = []
  const log = {
    ...SILENT,
    warn: (message: string, fields?: object) => void lines.push(message + JSON.stringify(fields)),
  }
  const client = { get: () => Promise.reject(new Error('connect ECONNREFUSED')) } as unknown as ObjectClient
  const options = { client, crds: [crdOf(UPSTREAM_CLUSTERS, '1.0.0')], log }
  await assert.rejects(new CrdInstallation(options).done(), /ECONNREFUSED/)
  assert.deepEqual(lines, [])
  const installation = new CrdInstallation(options)
  try {
    await installation.done(60_000)
    await waitFor('a line', () => lines.length > 0)
    assert.match(lines.join('\n'), /^CustomResourceDefinitions cannot be brought up to date yet.*ECONNREFUSED"\}$/)
  } finally {
    installation.stop()
  }
})
