import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryObjects } from '../../../../test/harness/objects/memory-objects.ts'
import { SILENT } from '../../../kit/api/ports.ts'
import { NodeWatch } from './node-watch.ts'

class Client extends MemoryObjects {
  close(): Promise<void> {
    return Promise.resolve()
  }
}

test('what a cluster says when its nodes cannot be watched goes into status and onto terminals: cut, and printable', async () => {
  const clock = { now: () => 0, monotonic: () => 0 }
  const options = { cluster: 'prod', client: new Client(), selector: undefined, startupMs: 0, proofMs: 1, clock }
  const watch = new NodeWatch({ ...options, log: SILENT })
  watch.onState(false, `nodes is forbidden: \u001b[2J\u009b\n${'x'.repeat(10_000)}`)
  const { message } = watch.seen()
  assert.match(message, /^nodes is forbidden: [^\p{Cc}]{200,}$/u)
  assert.ok(message.length <= 500)
  await watch.stop()
})
