// /debug/profile, /debug/heap and /debug/log-level of a gateway with two threads.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { after, before, test } from 'node:test'
import { logLevel } from '../../src/cli/inside.ts'
import { createLogger } from '../../src/kit/io/logs/log.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { waitFor } from '../harness/wait.ts'

const lines: { level: string; msg: string }[] = []
let gateway: InProcessGateway
before(async () => {
  const log = createLogger({ level: 'info', destination: { write: (line) => void lines.push(JSON.parse(line)) } })
  gateway = await startInProcess([], { threads: 2, replicaName: 'a' }, undefined, { log })
})
after(() => gateway.stop())

const url = (path: string): string => `http://127.0.0.1:${gateway.adminPort}${path}`

async function put(body: unknown): Promise<readonly [number, string]> {
  const response = await fetch(url('/debug/log-level'), { method: 'PUT', body: JSON.stringify(body) })
  return [response.status, await response.text()]
}

async function state(): Promise<{ level: string; until?: string }> {
  return (await (await fetch(url('/debug/log-level'))).json()) as { level: string; until?: string }
}

test('a profile of each thread, one at a time, which DevTools can read', async () => {
  for (const [path, kind] of [
    ['/debug/profile', 'cpu'],
    ['/debug/heap', 'heap'],
  ] as const) {
    const first = fetch(url(`${path}?seconds=1`))
    await waitFor('a second one to be refused', async () => {
      const second = await fetch(url('/debug/profile?seconds=1'))
      await second.body?.cancel()
      return second.status === 429
    })
    const response = await first
    if (response.status === 429) continue // The second one was first.
    const input = Buffer.from(await response.arrayBuffer())
    const names = String(execFileSync('tar', ['-tf', '-'], { input }))
      .trim()
      .split('\n')
    assert.deepEqual(
      names,
      ['main', 'gateway-0', 'gateway-1'].map((name) => `${name}.${kind}profile`),
    )
    for (const name of names) {
      const profile = JSON.parse(String(execFileSync('tar', ['-xOf', '-', name], { input, maxBuffer: 2 ** 28 })))
      if (kind === 'cpu') assert.ok(profile.nodes.length > 0 && Array.isArray(profile.samples), name)
      else assert.ok(Array.isArray(profile.samples) && profile.head !== undefined, name)
    }
  }
  for (const seconds of ['0', '61', '-1', '1.5', 'x', '']) {
    assert.equal((await fetch(url(`/debug/profile?seconds=${seconds}`))).status, 400, seconds)
  }
})

test('the log level changes in all threads, and comes back by itself', async () => {
  assert.deepEqual(await state(), { level: 'info' })
  const [code, text] = await put({ level: 'debug', for: '1h' })
  assert.equal(code, 200)
  const until = JSON.parse(text).until
  assert.ok(Date.parse(until) > Date.now())
  assert.deepEqual(await state(), { level: 'debug', until })
  // A thread that dies has a successor of the same level.
  await gateway.crashThread(0)
  await put({ level: 'error', for: '200ms' })
  await waitFor('the level of the settings', async () => (await state()).until === undefined)
  assert.deepEqual(await state(), { level: 'info' })
  assert.ok(lines.some(({ msg }) => msg === 'the log level has changed'))
  for (const body of [
    {},
    { level: 'loud' },
    { level: 'debug', for: '25h' },
    { level: 'debug', for: '0s' },
    { level: 'debug', for: 5 },
    'x',
    null,
  ]) {
    assert.equal((await put(body))[0], 400, JSON.stringify(body))
  }
  assert.deepEqual(await state(), { level: 'info' })
})

test('portcullis log-level', async () => {
  let text = ''
  const keep = (more: string): void => {
    text += more
  }
  const options = { admin: url(''), for: '5m', out: keep, err: keep }
  assert.equal(await logLevel(options), 0)
  assert.equal(text, 'a: info\n')
  text = ''
  assert.equal(await logLevel({ ...options, level: 'debug' }), 0)
  assert.match(text, /^a: debug until 20\d\d-.*Z\n$/)
  text = ''
  assert.equal(await logLevel({ ...options, level: 'info' }), 0)
  assert.equal(text, 'a: info\n')
  text = ''
  assert.equal(await logLevel({ ...options, level: 'debug', for: '10' }), 1)
  assert.equal(text, 'error: --for "10" is not a duration; write 10m\n')
})
