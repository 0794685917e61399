// In which order the parts of a gateway stop. Each place matters: what answers, what hands over, what writes last.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { type Logger, SILENT } from '../../src/kit/api/ports.ts'
import { loadConfig } from '../../src/process/config/config.ts'
import { startGateway } from '../../src/program/lifecycle/start-gateway.ts'

/** Without what the settings below leave out: audit files, traces, Redis. */
const ORDER = [
  'serving-certificate',
  'certificate-expiry',
  'stalls',
  'probes',
  'issuers',
  'servers',
  'rights',
  // Other replicas lead before this one stops following the objects.
  'statuses',
  'logouts',
  // Top talkers, taps and the dashboard.
  'insight',
  'session-recordings',
  'access-grants',
  'federated-reads',
  'read-cache',
  'scale-up-guards',
  'protection',
  'source',
  // What those before it have changed is on disk before the store is closed.
  'last-good',
  'objects',
  'threads',
  'upstreams',
  'log-level',
  // They answer to the end.
  'health',
  'admin',
]

test('the parts of a gateway stop in their order, listeners for health and administration last', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'portcullis-stop-order-'))
  try {
    const port = '127.0.0.1:0'
    const listeners = { listen: [port], adminListen: port, controlListen: port, healthListen: port }
    const config = loadConfig({
      flags: { source: 'embedded', dataDir: dir, accessLog: 'false', ...listeners },
      env: {},
      readFile: () => '',
    })
    const stopped: unknown[] = []
    const log: Logger = {
      ...SILENT,
      debug: (_, fields) => void ('part' in (fields ?? {}) && stopped.push(fields?.['part'])),
    }
    const gateway = await startGateway(config, { log, inline: true })
    assert.deepEqual(stopped, [])
    await gateway.stop()
    const always = stopped.filter((part) => part !== 'audit-webhook' && part !== 'audit-policy' && part !== 'traces')
    assert.deepEqual(always, ORDER)
  } finally {
    rmSync(dir, { recursive: true })
  }
})
