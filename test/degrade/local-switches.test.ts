// The degrade switch thrown on the machine of the gateway: files and the command, over a source whose API server is away or back.

import assert from 'node:assert/strict'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { ResourceSource, SourceChange } from '../../src/gateway/api/resource-source.ts'
import type { UpstreamCluster } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { UPSTREAM_CLUSTERS } from '../../src/gateway/api/upstream-cluster-kind.ts'
import type { DegradeOptions } from '../../src/incidents/cli/change.ts'
import { degradeCommand } from '../../src/incidents/cli/degrade.ts'
import { degradeLocally } from '../../src/incidents/cli/local.ts'
import { SwitchedSource } from '../../src/incidents/controllers/local-switches/switched-source.ts'
import { type LocalSwitches, SwitchDirectory } from '../../src/incidents/io/local-switches/switch-directory.ts'
import { type LocalSwitch, switchDirectory, writeSwitch } from '../../src/incidents/io/local-switches/switch-file.ts'
import type { JsonObject } from '../../src/kit/api/json/json-object.ts'
import type { Logger } from '../../src/kit/api/ports.ts'
import { systemClock } from '../../src/kit/io/world/clock.ts'
import { statusError } from '../../src/kube/api/status.ts'
import { MemoryObjects } from '../harness/objects/memory-objects.ts'
import { waitFor } from '../harness/wait.ts'

const THROWN: LocalSwitch = {
  cluster: 'prod',
  mode: 'Freeze',
  reason: 'INC-1',
  expiresAt: '',
  shadow: false,
  by: 'alice (uid 1)',
  at: '2030-01-31T12:00:00Z',
}

function dirOf(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), 'portcullis-switch-'))
  t.after(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

/** A machine with a gateway: objects in memory, whose API server is there or not. */
class Machine {
  readonly objects = new MemoryObjects()
  readonly deliveries: SourceChange[] = []
  readonly lines: string[] = []
  readonly audit: string[] = []
  readonly dataDir: string
  #source: SwitchedSource | undefined
  #deliver: (change: SourceChange) => void = () => undefined

  constructor(dataDir: string) {
    this.dataDir = dataDir
  }

  put(name: string, degrade: JsonObject): void {
    const spec = { servers: [{ endpoint: 'http://127.0.0.1:1' }], degrade }
    this.objects.put(UPSTREAM_CLUSTERS, {
      apiVersion: 'proxy.kubegateway.io/v1alpha1',
      kind: 'UpstreamCluster',
      metadata: { name },
      spec,
    })
  }

  async start(): Promise<void> {
    const inner: ResourceSource = {
      start: async (onChange) => {
        this.#deliver = onChange
        this.sync()
      },
      stop: async () => undefined,
    }
    const write = (message: string, fields?: object): void =>
      void this.lines.push(`${message} ${JSON.stringify(fields)}`)
    const log: Logger = { debug: write, info: write, warn: write, error: write }
    const source = new SwitchedSource({
      source: inner,
      client: this.objects,
      dataDir: this.dataDir,
      clock: systemClock,
      log,
      onThrown: ({ cluster, mode, by }, lifted) =>
        this.audit.push(`${by} ${lifted ? 'lifts' : 'sets'} ${mode} of ${cluster}`),
    })
    this.#source = source
    await source.start((change) => {
      this.deliveries.push(change)
      setImmediate(() => source.applied(change))
    })
  }

  async stop(): Promise<void> {
    await this.#source?.stop()
  }

  /** The source delivers the objects as they are. */
  sync(): void {
    const names = ['prod', 'other'].filter((name) => this.objects.find(UPSTREAM_CLUSTERS, name) !== undefined)
    const clusters = names.map((name) => {
      const object = this.objects.find(UPSTREAM_CLUSTERS, name) as unknown as UpstreamCluster
      return [name, { object, revision: String(object.metadata.generation) }] as const
    })
    this.#deliver({ clusters: new Map(clusters), problems: [] })
  }

  back(): void {
    this.#source?.current(true)
  }

  mode(name = 'prod'): string {
    return this.deliveries.at(-1)?.clusters.get(name)?.object.spec.degrade?.mode ?? ''
  }

  own(name = 'prod'): unknown {
    return Object(this.objects.find(UPSTREAM_CLUSTERS, name)?.['spec']).degrade
  }

  get file(): string {
    return join(switchDirectory(this.dataDir), 'prod.yaml')
  }

  async run(options: Partial<DegradeOptions>): Promise<{ code: number; out: string; err: string }> {
    const [out, err]: [string[], string[]] = [[], []]
    const io = { now: Date.now, out: (text: string) => void out.push(text), err: (text: string) => void err.push(text) }
    const given = {
      cluster: 'prod',
      status: false,
      local: true,
      dataDir: this.dataDir,
      timeout: '60s',
      ...options,
      ...io,
    }
    const code = await degradeLocally(given)
    return { code, out: out.join(''), err: err.join('') }
  }
}

async function machine(
  t: TestContext,
  degrade: JsonObject = { mode: 'Off', exempt: [{ verbs: ['get'] }] },
): Promise<Machine> {
  const one = new Machine(dirOf(t))
  one.put('prod', degrade)
  await one.start()
  t.after(() => one.stop())
  return one
}

test('the command: in force, told which user set it, and lifted again; the rest of spec.degrade stays', async (t) => {
  const one = await machine(t)
  const { code, out, err } = await one.run({ mode: 'freeze', reason: 'INC-1', ttl: '1h' })
  assert.equal(code, 0, err)
  assert.match(
    out,
    /^prod: degrade mode Freeze in force in all threads of this gateway since 20\S+Z, by \S+ \(uid \d+\)/,
  )
  assert.equal(one.mode(), 'Freeze')
  const applied = one.deliveries.at(-1)?.clusters.get('prod')?.object.spec.degrade
  assert.deepEqual(applied?.exempt, [{ verbs: ['get'] }])
  assert.match(applied?.expiresAt ?? '', /^20\S+Z$/)
  assert.equal(statSync(one.file).mode & 0o777, 0o600)
  assert.match(one.audit.join(), /^\S+ \(uid \d+\).* sets Freeze of prod$/)
  const status = await one.run({ status: true })
  assert.equal(status.code, 0)
  assert.match(status.out, /^CLUSTER +MODE +BY .*\nprod +Freeze +\S+ \(uid \d+\) .* INC-1\n$/)
  assert.match(one.deliveries.at(-1)?.problems[0]?.message ?? '', /degrade mode Freeze was set on this machine, by /)
  const lifted = await one.run({ off: true })
  assert.deepEqual([lifted.code, lifted.err], [0, ''])
  await waitFor('the mode of the object', () => one.mode() === 'Off')
  assert.match(one.audit.at(-1) ?? '', /lifts Freeze of prod$/)
  assert.equal((await one.run({ off: true })).code, 1)
  assert.match((await one.run({ status: true })).out, /no local degrade switch on this machine/)
})

test('it survives a restart, is not told twice, and counts from the first delivery on', async (t) => {
  const one = await machine(t)
  assert.equal((await one.run({ mode: 'ReadOnly', reason: 'INC-2' })).code, 0)
  await one.stop()
  one.deliveries.length = 0
  await one.start()
  assert.equal(one.deliveries[0]?.clusters.get('prod')?.object.spec.degrade?.mode, 'ReadOnly')
  assert.equal(one.audit.length, 1)
})

test('a file by hand: mode and reason are enough; a slip in it is named, and does not lift the switch', async (t) => {
  const one = await machine(t)
  writeFileSync(one.file, 'mode: NoDisruption\nreason: by hand\n', { mode: 0o600 })
  await waitFor('the mode', () => one.mode() === 'NoDisruption')
  assert.match(one.audit.join(), /^user \d+ sets NoDisruption of prod$/)
  writeFileSync(one.file, 'mode: Freez\nreason: by hand\n')
  const named = /prod\.yaml is ignored: mode "Freez" is not one of Off, .*; did you mean Freeze\?/
  await waitFor('the error', () =>
    named.test(
      one.deliveries
        .at(-1)
        ?.problems.map(({ message }) => message)
        .join() ?? '',
    ),
  )
  assert.equal(one.mode(), 'NoDisruption')
  assert.match((await one.run({ status: true })).err, named)
  rmSync(one.file)
  await waitFor('the mode of the object', () => one.mode() === 'Off')
})

test('back: it is written to the object and removed, and no other mode is in force in between', async (t) => {
  const one = await machine(t)
  assert.equal((await one.run({ mode: 'Freeze', reason: 'INC-3' })).code, 0)
  const before = one.deliveries.length
  one.back()
  await waitFor('the object to have it', () => Object(one.own()).mode === 'Freeze')
  assert.deepEqual(one.own(), { mode: 'Freeze', exempt: [{ verbs: ['get'] }], reason: 'INC-3' })
  // Until the object is delivered, the switch stays.
  assert.ok(existsSync(one.file))
  one.sync()
  await waitFor('the file to go', () => !existsSync(one.file))
  for (const { clusters } of one.deliveries.slice(before))
    assert.equal(clusters.get('prod')?.object.spec.degrade?.mode, 'Freeze')
  assert.match(one.lines.join('\n'), /no longer needed .*written to the object: the mode of the object has not changed/)
  assert.deepEqual(
    one.audit.filter((line) => line.includes('lifts')),
    [],
  )
})

test('back: a file that cannot be removed keeps no change of the objects out', async (t) => {
  const one = await machine(t)
  await one.run({ mode: 'freeze', reason: 'INC-1' })
  // For the removal, which looks at both names: not a file.
  mkdirSync(join(switchDirectory(one.dataDir), 'prod.yml'))
  one.back()
  await waitFor('the write to the object', () => JSON.stringify(one.own()).includes('INC-1'))
  one.put('other', { mode: 'ReadOnly' })
  one.sync()
  assert.equal(one.mode('other'), 'ReadOnly')
  await waitFor('a line in the log', () => one.lines.some((line) => line.startsWith('the file of a local degrade')))
})

test('back, and the object was changed: the stricter wins, and it is said which', async (t) => {
  for (const [theirs, ours, winner] of [
    ['Freeze', 'ReadOnly', 'Freeze'],
    ['Limited', 'ReadOnly', 'ReadOnly'],
  ] as const) {
    const one = await machine(t)
    assert.equal((await one.run({ mode: ours, reason: 'here' })).code, 0)
    one.put('prod', { mode: theirs, reason: 'there' })
    one.sync()
    assert.equal(one.mode(), ours)
    one.back()
    await waitFor('the end of it', () => {
      one.sync()
      return !existsSync(one.file)
    })
    one.sync()
    assert.equal(one.mode(), winner)
    assert.equal(Object(one.own()).mode, winner)
    if (winner === theirs) assert.match(one.lines.join('\n'), /in conflict with its object, which wins/)
  }
})

test('back, without the right to patch: it stays in force here, and the status says why', async (t) => {
  const one = await machine(t)
  const patch = one.objects.patch.bind(one.objects)
  one.objects.patch = () => Promise.reject(statusError('Forbidden', 'may not patch upstreamclusters'))
  assert.equal((await one.run({ mode: 'Freeze', reason: 'INC-5' })).code, 0)
  one.back()
  await waitFor('the reason', async () =>
    (await one.run({ status: true })).err.includes('may not patch upstreamclusters'),
  )
  one.sync()
  assert.equal(one.mode(), 'Freeze')
  assert.equal(one.lines.filter((line) => line.startsWith('a local degrade switch cannot be written')).length, 1)
  one.objects.patch = patch
  await waitFor('the object to have it', () => Object(one.own()).mode === 'Freeze')
})

test('while the API server answers, the command is as good as the other one', async (t) => {
  const one = await machine(t)
  one.back()
  const syncing = setInterval(() => one.sync(), 20)
  t.after(() => clearInterval(syncing))
  assert.equal((await one.run({ mode: 'Freeze', reason: 'INC-4' })).code, 0)
  await waitFor('the file to go', () => !existsSync(one.file))
  assert.equal(Object(one.own()).reason, 'INC-4')
})

test('files and directories of others do not count', async (t) => {
  const dataDir = dirOf(t)
  const dir = switchDirectory(dataDir)
  const seen: LocalSwitches[] = []
  const look = (uid?: number): LocalSwitches => {
    const directory = new SwitchDirectory(dir, (now) => seen.push(now), uid)
    const now = directory.start()
    directory.stop()
    return now
  }
  assert.equal(look().switches.size, 0)
  const file = writeSwitch(dataDir, THROWN)
  assert.deepEqual([...look().switches.values()], [THROWN])
  const refused = (why: RegExp, uid?: number): void => {
    const { switches, errors } = look(uid)
    assert.equal(switches.size, 0)
    assert.match([...errors.values()].join(), why)
  }
  chmodSync(file, 0o666)
  refused(/others may write it: chmod go-w/)
  chmodSync(file, 0o600)
  chmodSync(dir, 0o777)
  refused(/others may write it/)
  chmodSync(dir, 0o700)
  if (process.getuid?.() === 0) {
    chownSync(file, 12345, 12345)
    refused(/belongs to user 12345, neither to the gateway's \(0\) nor to root/)
    chownSync(file, 0, 0)
    // What root writes for a gateway that is not root belongs to that.
    chownSync(dataDir, 12345, 12345)
    writeSwitch(dataDir, THROWN)
    assert.deepEqual([statSync(file).uid, statSync(dir).uid], [12345, 12345])
    chownSync(dir, 0, 0)
    chownSync(file, 0, 0)
    chownSync(dataDir, 0, 0)
  } else refused(/belongs to user/, 12345)
  rmSync(file)
  symlinkSync('/etc/passwd', file)
  refused(/not a plain file/)
  rmSync(file)
  mkdirSync(file)
  refused(/not a plain file/)
  rmSync(file, { recursive: true })
  for (const [text, why] of [
    ['', /no fields/],
    ['mode: [Freeze]', /mode .* is not one of|needs a reason/],
    ['mode: Freeze', /Freeze needs a reason/],
    ['mode: Freeze\nreason: x\nexpires: y', /unknown field "expires"; did you mean expiresAt/],
    ['mode: Freeze\nreason: x\nexpiresAt: tomorrow', /expiresAt is not a time/],
    ['mode: Freeze\nreason: x\nshadow: maybe', /shadow is true or false/],
    ['mode: "Freeze', /Missing closing/],
    [`mode: Freeze\nreason: ${'x'.repeat(70_000)}`, /larger than 65536 bytes/],
  ] as const) {
    writeFileSync(file, text, { mode: 0o600 })
    refused(why)
  }
  rmSync(file)
  for (const name of ['.prod.yaml', 'prod.yaml~', 'PROD.yaml', 'prod.yaml.1a2b', 'state.json']) {
    writeFileSync(join(dir, name), 'mode: Freeze\nreason: x\n')
  }
  assert.deepEqual([look().switches.size, look().errors.size], [0, 0])
})

test('what the command refuses, and says when no gateway is there', async (t) => {
  const one = new Machine(dirOf(t))
  const cases: [Partial<DegradeOptions>, RegExp][] = [
    [{ mode: 'Freeze' }, /Freeze needs a reason/],
    [{ mode: 'Freez', reason: 'x' }, /did you mean Freeze/],
    [{ mode: 'Freeze', reason: 'x', recover: true }, /--recover and --watch need the API server/],
    [{ mode: 'Freeze', reason: 'x', kubeconfig: 'k' }, /--local does not use an API server/],
    [{ off: true, mode: 'Off' }, /--off lifts the local switch, and does nothing else/],
    [{ cluster: '../x', mode: 'Freeze', reason: 'x' }, /not a name of an UpstreamCluster/],
    [{ dataDir: '/nowhere', mode: 'Freeze', reason: 'x' }, /there is no directory \/nowhere; give --data-dir/],
    [{}, /nothing to do/],
  ]
  for (const [options, why] of cases) {
    const { code, err } = await one.run(options)
    assert.equal(code, 1)
    assert.match(err, why)
    assert.ok(!existsSync(one.file))
  }
  const never = await one.run({ mode: 'Freeze', reason: 'x', timeout: '1s' })
  assert.equal(never.code, 1)
  assert.match(
    never.err,
    /no gateway with --source kubernetes has run with it, and no other reads local switches; leave --local out/,
  )
  assert.ok(!existsSync(one.file))

  one.put('prod', { mode: 'Off' })
  await one.start()
  await one.stop()
  const unanswered = await one.run({ mode: 'Freeze', reason: 'x', timeout: '10ms' })
  assert.equal(unanswered.code, 1)
  assert.match(
    unanswered.err,
    /it is written, but not in force: no gateway has applied it; is one running with --source kubernetes/,
  )
  assert.match(readFileSync(one.file, 'utf8'), /^mode: Freeze$/m)
  const unseen = await one.run({ status: true })
  assert.equal(unseen.code, 1)
  assert.match(unseen.out, /^prod +Freeze .* no +x$/m)
  assert.match(unseen.err, /prod: no gateway has applied it/)
  const err: string[] = []
  const io = { now: Date.now, out: () => undefined, err: (text: string) => void err.push(text) }
  assert.equal(await degradeCommand({ cluster: 'prod', status: false, off: true, client: one.objects, ...io }), 1)
  assert.match(err.join(), /--off lifts a switch that was set with --local/)
})

test('beside the embedded API server there are no local switches: nothing is written, and what is there is named', async (t) => {
  const one = new Machine(dirOf(t))
  const control = join(one.dataDir, 'control')
  mkdirSync(control)
  for (const name of ['objects.db', 'address']) writeFileSync(join(control, name), '')
  const refused = await one.run({ mode: 'Freeze', reason: 'INC-1', timeout: '1s' })
  assert.equal(refused.code, 1)
  assert.match(refused.err, /own API server \(--source embedded\), which reads no local switches; leave --local out/)
  assert.ok(!existsSync(one.file))
  const none = await one.run({ status: true })
  assert.equal(none.code, 0)
  assert.match(
    none.out,
    /^no local degrade switch on this machine: the objects of its gateway are in its own API server/,
  )

  writeSwitch(one.dataDir, THROWN)
  const status = await one.run({ status: true })
  assert.equal(status.code, 1)
  assert.match(status.out, /^prod +Freeze .* no +INC-1$/m)
  assert.match(status.err, /^error: prod: it is not in force: .*--source embedded/)
  const removed = await one.run({ off: true })
  assert.deepEqual([removed.code, removed.err], [0, ''])
  assert.match(removed.out, /removed; it was not in force/)
  assert.ok(!existsSync(one.file))
})

test('a data directory that was embedded, and is that of a gateway with CRDs now: local switches work', async (t) => {
  const one = new Machine(dirOf(t))
  mkdirSync(join(one.dataDir, 'control'))
  for (const name of ['objects.db', 'address']) writeFileSync(join(one.dataDir, 'control', name), '')
  const before = new Date('2026-01-01T00:00:00Z')
  utimesSync(join(one.dataDir, 'control', 'address'), before, before)
  one.put('prod', { mode: 'Off' })
  await one.start()
  t.after(() => one.stop())
  assert.equal((await one.run({ mode: 'ReadOnly', reason: 'INC-2' })).code, 0)
})

test('a cluster that there is not: said, and not in force', async (t) => {
  const one = await machine(t)
  const { code, err } = await one.run({ cluster: 'prd', mode: 'Freeze', reason: 'x', timeout: '2s' })
  assert.equal(code, 1)
  assert.match(err, /there is no cluster prd/)
  assert.match(
    one.deliveries
      .at(-1)
      ?.problems.map(({ message }) => message)
      .join() ?? '',
    /is for prd, which does not exist/,
  )
})
