import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Logger } from '../../kit/api/ports.ts'
import { type Config, loadConfig } from '../../process/config/config.ts'
import { memoryCeiling } from '../../process/core/memory/ceiling.ts'
import { LEAST } from '../../process/core/memory/fit.ts'
import { type GrantedByMachine, logMemoryPlan, memoryLimit, planMemory } from './memory-plan.ts'

const GIB = 1024 ** 3
const LARGE: GrantedByMachine = { controlGroupBytes: 0, machineBytes: 64 * GIB, openFiles: 0 }

function settings(flags: Record<string, unknown> = {}): Config {
  const all = { source: 'files', configDir: 'config', threads: '1', ...flags }
  return loadConfig({ flags: all, env: {}, readFile: () => '' })
}

function logged(
  flags: Record<string, unknown>,
  granted: GrantedByMachine,
): { level: string; message: string; fields: Record<string, unknown> } {
  const lines: { level: string; message: string; fields: Record<string, unknown> }[] = []
  const at =
    (level: string) =>
    (message: string, fields: Record<string, unknown> = {}) =>
      void lines.push({ level, message, fields })
  const log: Logger = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
  logMemoryPlan(planMemory(settings(flags), granted), log)
  const [line, ...others] = lines
  assert.ok(line !== undefined && others.length === 0)
  return line
}

test('on a large machine the defaults are as they are', () => {
  const config = settings()
  const plan = planMemory(config, LARGE)
  assert.deepEqual(plan.config, { ...config, maxFollowedBytes: 4 * GIB })
  assert.deepEqual([plan.limitBytes, plan.limitFrom, plan.lowered], [32 * GIB, 'half of the machine', []])
  assert.deepEqual([config.maxConnections, config.maxRequestsInflight, config.maxWatches], [20_000, 4096, 50_000])
})

test('in a control group they are lowered until the ceiling fits', () => {
  for (const threads of ['1', '2']) {
    const plan = planMemory(settings({ threads }), { ...LARGE, controlGroupBytes: 1.5 * GIB })
    assert.equal(plan.limitFrom, 'control group')
    assert.ok(plan.ceiling.bytes <= 1.5 * GIB && plan.ceiling.bytes > 1.49 * GIB)
    assert.equal(plan.lowered.length, 4)
    assert.ok(plan.config.maxConnections >= LEAST.maxConnections && plan.config.maxConnections < 20_000)
  }
})

test('--memory-limit wins over the control group, and what was set stays', () => {
  const plan = planMemory(settings({ memoryLimit: '2Gi', maxConnections: '10000' }), {
    ...LARGE,
    controlGroupBytes: GIB,
  })
  assert.deepEqual([plan.limitBytes, plan.limitFrom], [2 * GIB, 'setting'])
  assert.equal(plan.config.maxConnections, 10_000)
  assert.ok(plan.lowered.every(({ setting }) => setting !== 'maxConnections'))
})

test('objects of clusters may take an eighth of the limit, or what was set', () => {
  const group = { ...LARGE, controlGroupBytes: 2 * GIB }
  assert.equal(planMemory(settings(), group).config.maxFollowedBytes, GIB / 4)
  assert.equal(planMemory(settings({ maxFollowedBytes: '700Mi' }), group).config.maxFollowedBytes, 700 * 1024 ** 2)
})

test('a group that may take more than there is does not count', () => {
  const plan = planMemory(settings(), { ...LARGE, controlGroupBytes: 128 * GIB })
  assert.equal(plan.limitFrom, 'half of the machine')
})

test('no more connections than files may be open, unless the settings ask for more', () => {
  assert.equal(planMemory(settings(), { ...LARGE, openFiles: 4096 }).config.maxConnections, 3072)
  const control = settings({ source: 'embedded', configDir: undefined, maxControlConnections: '200' })
  assert.equal(planMemory(control, { ...LARGE, openFiles: 4096 }).config.maxConnections, 3072 - 200)
  assert.equal(planMemory(settings(), { ...LARGE, openFiles: 1024 }).config.maxConnections, 512)
  assert.equal(
    planMemory(settings({ maxConnections: '5000' }), { ...LARGE, openFiles: 1024 }).config.maxConnections,
    5000,
  )
})

test('the start says what it comes to, in one line', () => {
  const { level, message, fields } = logged({}, { ...LARGE, controlGroupBytes: 1.5 * GIB })
  assert.deepEqual([level, message, fields['limit']], ['info', 'memory has a ceiling', '1536Mi'])
  assert.match(String(fields['lowered']), /--max-connections from 20000/)
  assert.match(String(fields['largest']), /connections of clients: \d+Mi/)
})

test('what does not fit is a warning that names the settings to lower, the largest first', () => {
  const { level, message } = logged({ maxConnections: '100000' }, { ...LARGE, controlGroupBytes: 2 * GIB })
  assert.equal(level, 'warn')
  assert.match(message, /more memory than there is: lower --max-connections, .*--threads/)
})

test('0 is any number: there is no ceiling, and the start says why', () => {
  const { level, message, fields } = logged({ maxWatches: '0' }, LARGE)
  assert.deepEqual([level, fields['ceiling']], ['warn', 'none'])
  assert.match(message, /no ceiling: --max-watches of 0/)
})

test('a thread gets as much heap as what it may hold takes, garbage included', () => {
  const { heap, ceiling } = planMemory(settings(), { ...LARGE, controlGroupBytes: 2 * GIB })
  const inHeaps = ceiling.rows
    .filter(({ what }) => !what.includes('main thread'))
    .reduce((sum, row) => sum + row.heap, 0)
  assert.ok(heap.oldMiB * 1024 ** 2 > inHeaps && heap.oldMiB * 1024 ** 2 < ceiling.bytes)
  const two = planMemory(settings({ threads: '2' }), LARGE)
  assert.ok(two.heap.oldMiB < planMemory(settings(), LARGE).heap.oldMiB)
  assert.equal(two.ceiling.bytes, memoryCeiling({ ...MEASURED, threads: 2 }).bytes)
})

/** Same as the defaults. */
const MEASURED = {
  threads: 1,
  maxConnections: 20_000,
  maxRequestsInflight: 4096,
  maxWatches: 50_000,
  maxBufferedBytes: 256 * 1024 * 1024,
  maxFollowedBytes: 0,
  logs: 2,
  auditBodies: false,
  auditWebhook: false,
  tracing: false,
  top: true,
  embedded: false,
  webhooks: 0,
  maxControlConnections: 512,
  adminTlsPorts: 0,
}

const files =
  (content: Readonly<Record<string, string>>) =>
  (path: string): string | undefined =>
    content[path]

test('version 2: the smallest limit of the group and those that it is in', () => {
  const of = files({
    '/proc/self/cgroup': '0::/kubepods/pod1/c1\n',
    '/sys/fs/cgroup/kubepods/pod1/c1/memory.max': 'max\n',
    '/sys/fs/cgroup/kubepods/pod1/memory.max': '2147483648\n',
    '/sys/fs/cgroup/kubepods/memory.max': '8589934592\n',
  })
  assert.equal(memoryLimit(of), 2 ** 31)
})

test('version 2 in a container, which sees its own group as the root', () => {
  assert.equal(
    memoryLimit(files({ '/proc/self/cgroup': '0::/\n', '/sys/fs/cgroup/memory.max': '1073741824\n' })),
    2 ** 30,
  )
})

test('version 1, also where the path is that of the host', () => {
  const of = files({
    '/proc/self/cgroup': '4:cpu,cpuacct:/docker/abc\n9:memory:/docker/abc\n0::/docker/abc\n',
    '/sys/fs/cgroup/memory/memory.limit_in_bytes': '536870912\n',
  })
  assert.equal(memoryLimit(of), 2 ** 29)
})

test('none: the largest number of version 1, max, and a system without groups', () => {
  const v1 = {
    '/proc/self/cgroup': '9:memory:/\n',
    '/sys/fs/cgroup/memory/memory.limit_in_bytes': '9223372036854771712\n',
  }
  assert.equal(memoryLimit(files(v1)), 0)
  assert.equal(memoryLimit(files({ '/proc/self/cgroup': '0::/\n', '/sys/fs/cgroup/memory.max': 'max\n' })), 0)
  assert.equal(memoryLimit(files({})), 0)
})

test('this process has a limit, or none', () => {
  assert.ok(memoryLimit() >= 0)
})
