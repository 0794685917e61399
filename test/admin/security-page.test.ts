// docs/security.md, block by block, in the demo: during an attack it leads to who it is, and stops them.

import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import process from 'node:process'
import { after, before, test } from 'node:test'
import { type RunningDemo, startDemo } from '../../src/demo/demo.ts'
import { binaries } from '../harness/binaries.ts'
import { commandBlocks, portcullisCommand, ReaderShell } from '../harness/docs/command-blocks.ts'
import { freePorts } from '../harness/ports.ts'
import { waitFor } from '../harness/wait.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const PAGE = 'docs/security.md'
const blocks = commandBlocks(PAGE, readFileSync(join(ROOT, PAGE), 'utf8'))

let folder: string
let demo: RunningDemo
let shell: ReaderShell

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'portcullis-security-'))
  const [port = 0, admin = 0, control = 0] = await freePorts(3)
  const at = (number: number): string => `127.0.0.1:${number}`
  const dir = join(folder, 'demo')
  demo = await startDemo({
    listen: at(port),
    adminListen: at(admin),
    controlListen: at(control),
    dir,
    out: () => undefined,
  })
  const kubeconfig = join(folder, 'kubeconfig')
  writeFileSync(
    kubeconfig,
    readFileSync(demo.kubeconfig, 'utf8').replace(/^current-context: .*/m, 'current-context: portcullis'),
  )
  const [home, cwd] = ['home', 'checkout'].map((name) => join(folder, name))
  for (const path of [home, cwd]) mkdirSync(path ?? '')
  symlinkSync(join(dir, 'access.log'), join(cwd ?? '', 'access.log'))
  mkdirSync(join(cwd ?? '', 'bin'))
  writeFileSync(join(cwd ?? '', 'bin/portcullis'), portcullisCommand(join(folder, 'pid')), { mode: 0o755 })
  const { kubectl } = await binaries()
  const path = `${dirname(kubectl)}:${dirname(process.execPath)}:${process.env['PATH']}`
  const env = { PATH: path, KUBECONFIG: kubeconfig, PORTCULLIS_ADMIN: `http://${at(admin)}` }
  shell = new ReaderShell({ cwd: cwd ?? '', home: home ?? '', env })
})
after(async () => {
  shell?.end()
  await demo?.stop()
  rmSync(folder, { recursive: true, force: true })
})

const run = (text: string): Promise<string> =>
  shell.run(text.replaceAll('127.0.0.1:9090', `127.0.0.1:${demo.adminPort}`))

/** What the page promises of the block that has this. */
const SAYS: readonly (readonly [has: string, expected: RegExp])[] = [
  ['limited_total|', /portcullis_refusals_total\{.*\} [1-9][\s\S]*portcullis_memory_ceiling_bytes [1-9]/],
  ['/api/v1/shares', /"limit"[\s\S]*USER[\s\S]*ci-bot[\s\S]*ADDRESS[\s\S]*127\.0\.0\.1/],
  ['tap prod', /ci-bot +list +pods/],
  ['access.log', /\d+ \S+\tci-bot\t/],
  ['INC-4711', /refusals_total\{[^}]*INC-4711[^}]*\} [1-9]/],
]

test('the page has what is promised of it', () => {
  for (const [has] of SAYS) assert.equal(blocks.filter(({ text }) => text.includes(has)).length, 1, has)
})

test('an alert: the client that asks too much has met its limit', async () => {
  await waitFor('refusals', () => (demo.traffic.answers.get(429) ?? 0) > 5)
})

for (const { place, text } of blocks) {
  test(`${place}: ${text.split('\n')[0]}`, async () => {
    const said = await run(text)
    for (const [has, expected] of SAYS) if (text.includes(has)) assert.match(said, expected)
  })
}

test('afterwards all is as it was', async () => {
  const spec = await run('kubectl get uc prod -o json')
  assert.doesNotMatch(spec.replace(/"managedFields"[\s\S]*?\n {8}\],/, ''), /INC-4711/)
})
