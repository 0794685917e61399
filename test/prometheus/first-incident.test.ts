// docs/first-incident.md, block by block, in the demo: it leads to the client that asks for too much, and to a limit for that client alone.
// And the commands of docs/runbooks.md that only look.

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
const PAGE = 'docs/first-incident.md'
const blocks = commandBlocks(PAGE, readFileSync(join(ROOT, PAGE), 'utf8'))

let folder: string
let demo: RunningDemo
let shell: ReaderShell

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'portcullis-incident-'))
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
  ['get uc', /prod .*staging /s],
  ['--sort refused', /USER[\s\S]*USER[\s\S]*USER.*\n+.*ci-bot/],
  ['tap prod', /ci-bot +list +pods[\s\S]*policy/i],
  ['"shadow":true', /shadow_refusals_total\{cluster="prod",rule="flow-control\/INC-4711"\} [1-9]/],
  ['"value":false', /flow_control_rejected_total\{cluster="prod",schema="INC-4711"\} [1-9]/],
  ['"op":"remove"', /patched/],
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

const RUNBOOKS = readFileSync(join(ROOT, 'docs/runbooks.md'), 'utf8')
const LOOKS =
  /`((?:kubectl get|kubectl describe|bin\/portcullis degrade prod --status|bin\/portcullis protect status)[^`]*)`/g

test('the commands of the runbooks that only look', async () => {
  const commands = new Set([
    ...commandBlocks('docs/runbooks.md', RUNBOOKS).flatMap(({ text }) => text.split('\n')),
    ...[...RUNBOOKS.matchAll(LOOKS)].map(([, command = '']) => command),
  ])
  assert.ok(commands.size >= 6, [...commands].join())
  // 1: `protect status` says that something is below its minimum.
  for (const command of commands) await run(`{ ${command}\n} || [ $? = 1 ]`)
})

test('afterwards all is as it was', async () => {
  const spec = await run('kubectl get uc prod -o json')
  assert.doesNotMatch(spec.replace(/"managedFields"[\s\S]*?\n {8}\],/, ''), /INC-4711/)
})
