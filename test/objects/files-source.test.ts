// The files source against a real directory: what it delivers on each change. Tests wait for deliveries, never for time.

import assert from 'node:assert/strict'
import { linkSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { stringify } from 'yaml'
import { check } from '../../src/cli/check.ts'
import type { SourceChange } from '../../src/gateway/api/resource-source.ts'
import { createFilesSource, loadDirectory } from '../../src/gateway/io/sources/files/source.ts'
import type { Logger } from '../../src/kit/api/ports.ts'
import { UserError } from '../../src/kit/api/validation/field-errors.ts'
import { nodePemChecks } from '../../src/pki/io/pem-checks.ts'
import { createCA } from '../../src/pki/io/pki.ts'

const ROOT = mkdtempSync(join(tmpdir(), 'portcullis-files-'))
after(() => rmSync(ROOT, { recursive: true }))

function newDirectory(files: Record<string, string> = {}): string {
  const dir = mkdtempSync(join(ROOT, 'd'))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text)
  return dir
}

interface Shape {
  host?: string
  qps?: number
  more?: object
}

/** A good cluster; `qps` tells versions apart. */
function manifest(name: string, { host, qps = 1, more = {} }: Shape = {}): string {
  return stringify({
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name },
    spec: {
      servers: [{ endpoint: 'https://192.0.2.1:6443' }],
      clientConfig: { insecure: true, bearerToken: 'dG9rZW4=', qps, burst: qps },
      dispatchPolicies: [{ rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }] }],
      ...(host !== undefined && { secureServing: { serverNames: [host] } }),
      ...more,
    },
  })
}

const BROKEN = manifest('a').replace('servers:', 'sevrers:')

interface LogLine {
  level: string
  message: string
  fields: Record<string, unknown>
}

/** A running source that remembers what it delivered and logged. */
class Running {
  readonly lines: LogLine[] = []
  change: SourceChange | undefined
  /** How many clusters each delivery had. */
  readonly sizes: number[] = []
  readonly #signal: AbortSignal
  #wake: () => void = () => undefined

  constructor(signal: AbortSignal) {
    this.#signal = signal
  }

  onChange(change: SourceChange): void {
    this.change = change
    this.sizes.push(change.clusters.size)
    this.#wake()
  }

  readonly log: Logger = {
    debug: () => undefined,
    info: (message, fields = {}) => void this.lines.push({ level: 'info', message, fields }),
    warn: (message, fields = {}) => void this.lines.push({ level: 'warn', message, fields }),
    error: (message, fields = {}) => void this.lines.push({ level: 'error', message, fields }),
  }

  /** `name qps` of what is in force. */
  get state(): string[] {
    const clusters = [...(this.change?.clusters.values() ?? [])]
    return clusters
      .map(({ object }) => `${object.metadata.name} ${object.spec.clientConfig?.qps}`)
      .sort((a, b) => (a < b ? -1 : 1))
  }

  get errors(): string[] {
    return (this.change?.problems ?? [])
      .filter(({ severity }) => severity === 'error')
      .map(({ file, line, path }) => `${file}:${line} ${path}`)
  }

  /** Resolves when what was delivered satisfies `condition`. */
  async until(condition: (running: Running) => boolean): Promise<void> {
    // Watching alone does not keep a process alive.
    const alive = setInterval(() => undefined, 60_000)
    try {
      while (!condition(this)) {
        await new Promise<void>((resolve, reject) => {
          this.#wake = resolve
          this.#signal.addEventListener('abort', () => reject(this.#signal.reason), { once: true })
        })
      }
    } finally {
      clearInterval(alive)
    }
  }

  untilState(...state: string[]): Promise<void> {
    return this.until((running) => running.state.join() === state.join())
  }
}

async function run(t: TestContext, dir: string): Promise<Running> {
  const running = new Running(t.signal)
  const source = createFilesSource({ dir, pem: nodePemChecks, log: running.log, debounceMs: 20 })
  await source.start((change) => running.onChange(change))
  t.after(() => source.stop())
  return running
}

test('a change, an addition and a removal are delivered', async (t) => {
  const dir = newDirectory({ 'a.yaml': `${manifest('a')}---\n${manifest('b')}` })
  const running = await run(t, dir)
  assert.deepEqual(running.state, ['a 1', 'b 1'])
  const before = running.change?.clusters.get('b')?.revision
  writeFileSync(join(dir, 'a.yaml'), `${manifest('a', { qps: 2 })}---\n${manifest('b')}`)
  await running.untilState('a 2', 'b 1')
  assert.equal(running.change?.clusters.get('b')?.revision, before)
  writeFileSync(join(dir, 'c.json'), JSON.stringify(JSON.parse('{"apiVersion":"v1","kind":"List","items":[]}')))
  writeFileSync(join(dir, 'd.yml'), manifest('d'))
  await running.untilState('a 2', 'b 1', 'd 1')
  unlinkSync(join(dir, 'd.yml'))
  await running.untilState('a 2', 'b 1')
  writeFileSync(join(dir, 'a.yaml'), manifest('b'))
  await running.untilState('b 1')
  assert.deepEqual(running.lines, [])
})

test('a broken file keeps its last good version and is logged once; other files go on', async (t) => {
  const dir = newDirectory({ 'a.yaml': manifest('a'), 'b.yaml': manifest('b') })
  const running = await run(t, dir)
  writeFileSync(join(dir, 'a.yaml'), BROKEN)
  await running.until(({ errors }) => errors.length > 0)
  assert.deepEqual(running.state, ['a 1', 'b 1'])
  assert.deepEqual(running.errors, ['a.yaml:5 spec.servers'])
  writeFileSync(join(dir, 'b.yaml'), manifest('b', { qps: 2 }))
  await running.untilState('a 1', 'b 2')
  const logged = running.lines.filter(({ level }) => level === 'error')
  assert.equal(logged.length, 1)
  assert.deepEqual(logged[0]?.fields['lastGood'], ['a'])
  const unknown = running.lines.find(({ level, fields }) => level === 'warn' && fields['path'] === 'spec.sevrers')
  assert.deepEqual(
    [unknown?.fields['line'], unknown?.fields['problem'], unknown?.fields['fix']],
    [6, 'unknown field, ignored', 'did you mean servers?'],
  )
  writeFileSync(join(dir, 'a.yaml'), manifest('a', { qps: 3 }))
  await running.untilState('a 3', 'b 2')
  assert.deepEqual(running.errors, [])
})

test('a file that is no longer valid YAML keeps all it defined; so does a truncated one', async (t) => {
  const both = `${manifest('a')}---\n${manifest('b')}`
  const dir = newDirectory({ 'ab.yaml': both, 'c.yaml': manifest('c') })
  const running = await run(t, dir)
  for (const text of [
    both.slice(0, both.indexOf('dispatchPolicies')),
    `${manifest('a')}---\n"`,
    both.replace('UpstreamCluster', 'UpstreamClutser'),
    '',
  ]) {
    writeFileSync(join(dir, 'ab.yaml'), text)
    await running.until(({ change }) => (change?.problems.length ?? 0) > 0)
    // Whatever reads the directory next has seen the broken file.
    const qps = Number(running.state[2]?.split(' ')[1]) + 1
    writeFileSync(join(dir, 'c.yaml'), manifest('c', { qps }))
    await running.untilState('a 1', 'b 1', `c ${qps}`)
    writeFileSync(join(dir, 'ab.yaml'), both)
    await running.until(({ change }) => change?.problems.length === 0)
  }
})

test('a new cluster cannot take a host from one that has it', async (t) => {
  const dir = newDirectory({ 'm.yaml': manifest('m', { host: 'x.example.com' }) })
  const running = await run(t, dir)
  writeFileSync(join(dir, 'a.yaml'), manifest('a', { host: 'X.example.com' }))
  await running.until(({ errors }) => errors.length > 0)
  assert.deepEqual(running.state, ['m 1'])
  const [problem] = running.change?.problems ?? []
  assert.equal(`${problem?.file}:${problem?.line} ${problem?.path}`, 'a.yaml:23 spec.secureServing.serverNames[0]')
  assert.match(problem?.message ?? '', /"a" claims host name "x\.example\.com", which "m" \(m\.yaml:1\) has/)
  writeFileSync(join(dir, 'm.yaml'), manifest('m'))
  await running.untilState('a 1', 'm 1')
})

test('a renamed file goes on serving', async (t) => {
  const dir = newDirectory({ 'a.yaml': manifest('a') })
  const running = await run(t, dir)
  renameSync(join(dir, 'a.yaml'), join(dir, 'b.yaml'))
  writeFileSync(join(dir, 'c.yaml'), manifest('c'))
  await running.untilState('a 1', 'c 1')
  assert.ok(!running.sizes.includes(0), 'the cluster was gone for a moment')
})

test('referenced files and Secrets are followed and watched', async (t) => {
  const secret = (token: string): string =>
    stringify({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' }, stringData: { token } })
  const more = {
    clientConfig: { bearerTokenRef: { name: 's', key: 'token' }, caRef: { file: 'tls/ca.crt' }, qps: 1, burst: 1 },
  }
  const dir = newDirectory({ 'a.yaml': manifest('a', { more }), 's.yaml': secret('one') })
  mkdirSync(join(dir, 'tls'))
  const [first, second] = [createCA({ commonName: '1' }).certPem, createCA({ commonName: '2' }).certPem]
  writeFileSync(join(dir, 'tls/ca.crt'), first)
  const running = await run(t, dir)
  const config = (): unknown => running.change?.clusters.get('a')?.object.spec.clientConfig
  const base64 = (text: string): string => Buffer.from(text).toString('base64')
  const revision = running.change?.clusters.get('a')?.revision
  assert.match(revision ?? '', /^[0-9a-f]{16}$/)
  assert.deepEqual(config(), { qps: 1, burst: 1, bearerToken: base64('one'), caData: base64(first) })
  writeFileSync(join(dir, 'tls/ca.crt'), second)
  await running.until(() => JSON.stringify(config()).includes(base64(second)))
  assert.notEqual(running.change?.clusters.get('a')?.revision, revision)
  writeFileSync(join(dir, 's.yaml'), secret('two'))
  await running.until(() => JSON.stringify(config()).includes(base64('two')))
  unlinkSync(join(dir, 'tls/ca.crt'))
  await running.until(({ errors }) => errors.length > 0)
  assert.deepEqual(running.errors, ['a.yaml:13 spec.clientConfig.caRef.file'])
  assert.ok(JSON.stringify(config()).includes(base64(second)))
  writeFileSync(join(dir, 'tls/ca.crt'), 'no PEM')
  await running.until(({ errors }) => errors[0] === 'a.yaml:12 spec.clientConfig.caRef')
})

test('a mounted ConfigMap is followed when its link is swapped', async (t) => {
  const dir = newDirectory()
  const publish = (version: string, text: string): void => {
    mkdirSync(join(dir, version))
    writeFileSync(join(dir, version, 'a.yaml'), text)
    symlinkSync(version, join(dir, '..data_tmp'))
    renameSync(join(dir, '..data_tmp'), join(dir, '..data'))
  }
  publish('..1', manifest('a'))
  symlinkSync('..data/a.yaml', join(dir, 'a.yaml'))
  const running = await run(t, dir)
  assert.deepEqual(running.state, ['a 1'])
  publish('..2', manifest('a', { qps: 2 }))
  rmSync(join(dir, '..1'), { recursive: true })
  await running.untilState('a 2')
})

test('a change that no watcher sees is found by the poll', async (t) => {
  const elsewhere = join(newDirectory(), 'a.yaml')
  writeFileSync(elsewhere, manifest('a'))
  const dir = newDirectory()
  linkSync(elsewhere, join(dir, 'a.yaml'))
  const running = await run(t, dir)
  writeFileSync(elsewhere, manifest('a', { qps: 2 }))
  await running.untilState('a 2')
})

test('a directory that goes away leaves everything in force', async (t) => {
  const dir = newDirectory({ 'a.yaml': manifest('a') })
  const running = await run(t, dir)
  renameSync(dir, `${dir}-away`)
  await running.until(({ errors }) => errors.length > 0)
  assert.deepEqual(running.state, ['a 1'])
  renameSync(`${dir}-away`, dir)
  writeFileSync(join(dir, 'a.yaml'), manifest('a', { qps: 2 }))
  await running.untilState('a 2')
})

test('a directory that is missing at the start is one clear error', async (t) => {
  const dir = join(ROOT, 'none')
  const source = createFilesSource({ dir, pem: nodePemChecks, log: new Running(t.signal).log })
  await assert.rejects(
    source.start(() => undefined),
    (error) => {
      assert.ok(error instanceof UserError)
      assert.equal(error.message, `configuration directory ${dir} does not exist`)
      return true
    },
  )
  await source.stop()
})

test('one error does not affect other documents or files', async () => {
  const dir = newDirectory({
    'a.yaml': `${BROKEN}---\n${manifest('b')}---\n- x\n---\nkind: ConfigMap\napiVersion: v1\n---\nkind: UpstreamClusters\napiVersion: proxy.kubegateway.io/v1alpha1\n`,
    'big.yaml': '#'.repeat(3 * 1024 * 1024 + 1),
    'bytes.yaml': 'x',
    'dup.yaml': manifest('b'),
    'empty.yaml': '',
    'list.json': JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [{ kind: 'UpstreamCluster' }] }),
    'nothing.yml': '# nothing\n',
    'notes.txt': 'x: [',
    '.hidden.yaml': 'x: [',
  })
  writeFileSync(join(dir, 'bytes.yaml'), Buffer.from([0x61, 0x3a, 0xff, 0xfe]))
  const { clusters, problems } = await loadDirectory(dir, nodePemChecks)
  assert.deepEqual([...clusters.keys()], ['b'])
  assert.equal(clusters.get('b')?.line, 22)
  assert.deepEqual(
    problems.map(({ severity, file, line, path }) => `${severity} ${file}:${line} ${path}`),
    [
      'error a.yaml:5 spec.servers',
      'warning a.yaml:6 spec.sevrers',
      'error a.yaml:43 ',
      'warning a.yaml:45 kind',
      'error a.yaml:48 kind',
      'error big.yaml:0 ',
      'error bytes.yaml:0 ',
      'error dup.yaml:4 metadata.name',
      'warning empty.yaml:0 ',
      'error list.json:1 apiVersion',
      'error list.json:1 metadata.name',
      'error list.json:1 spec.dispatchPolicies',
      'error list.json:1 spec.servers',
    ],
  )
})

async function runCheck(dir: string, output: 'text' | 'json'): Promise<{ code: number; text: string }> {
  const parts: string[] = []
  const code = await check({ dir, output, out: (text) => void parts.push(text) })
  return { code, text: parts.join('') }
}

test('check: exit code and the fixed JSON shape', async () => {
  const bad = await runCheck(newDirectory({ 'a.yaml': BROKEN }), 'json')
  assert.equal(bad.code, 1)
  const fix = 'did you mean servers?'
  const [, unknown] = JSON.parse(bad.text).problems
  assert.deepEqual(Object.keys(JSON.parse(bad.text)), ['valid', 'problems'])
  assert.deepEqual(unknown, {
    file: 'a.yaml',
    line: 6,
    path: 'spec.sevrers',
    message: 'unknown field, ignored',
    fix,
    severity: 'warning',
  })
  const good = await runCheck(newDirectory({ 'a.yaml': manifest('a') }), 'json')
  assert.deepEqual([good.code, JSON.parse(good.text)], [0, { valid: true, problems: [] }])
})

test('check: warnings are no errors; no cluster and no directory name the directory', async () => {
  const empty = newDirectory()
  const warned = await runCheck(empty, 'json')
  const { valid, problems } = JSON.parse(warned.text)
  assert.deepEqual([warned.code, valid, problems.length], [0, true, 1])
  assert.deepEqual([problems[0].file, problems[0].severity], [empty, 'warning'])
  const missing = await runCheck(join(ROOT, 'none'), 'json')
  assert.equal(missing.code, 1)
  assert.deepEqual(
    [JSON.parse(missing.text).valid, JSON.parse(missing.text).problems[0].file],
    [false, join(ROOT, 'none')],
  )
})

test('check: two lines for each problem', async () => {
  const rules = [{ apiGroups: ['*'], resources: ['*'] }]
  const dir = newDirectory({
    'a.yaml': manifest('a', { host: 'x', more: { dispatchPolicies: [{ rules }] } }),
    'b.yaml': manifest('b', { host: 'x' }),
  })
  const { code, text } = await runCheck(dir, 'text')
  assert.equal(code, 1)
  assert.equal(
    text,
    [
      'a.yaml:15: spec.dispatchPolicies[0].rules[0].verbs: warning: is empty, so the rule matches no request',
      '  fix: add verbs; ["*"] is all',
      'b.yaml:23: spec.secureServing.serverNames[0]: UpstreamCluster "b" claims host name "x", which "a" (a.yaml:1) has',
      '  fix: remove it from one of the two',
      'not valid: 1 error, 1 warning',
      '',
    ].join('\n'),
  )
})
