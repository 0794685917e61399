// h2spec (https://github.com/summerwind/h2spec), all of it, against the gateway: it checks RFC 9113's forerunner and RFC 7541 section by section.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { binaries } from '../harness/binaries.ts'
import { startInProcess } from '../harness/in-process.ts'
import { clusterObject } from '../harness/objects.ts'
import { endWithThisProcess } from '../harness/process.ts'
import { reply, startStub } from '../harness/stub-upstream.ts'

/** What h2spec 2.2.1 has, the strict one included; fewer would mean that some were not run. */
const CASES = 146
/** How long h2spec waits for an answer before a case has failed, seconds. Generous: a busy machine must not fail it. */
const CASE_TIMEOUT_SECONDS = 10

interface Case {
  readonly name: string
  readonly failure: string
}

const programs = await binaries()
const stub = await startStub()
const gateway = await startInProcess([clusterObject([stub], { spec: { default: true } })])
const folder = mkdtempSync(join(tmpdir(), 'portcullis-h2spec-'))
after(async () => {
  await gateway.stop()
  await stub.stop()
  rmSync(folder, { recursive: true, force: true })
})

test('every case passes', async () => {
  stub.answer = (request) => {
    request.stream.resume()
    reply(request, 200, JSON.stringify({ kind: 'PodList', items: ['x'.repeat(1000)] }))
  }
  const report = join(folder, 'report.xml')
  const output = await run(report)
  const cases = readReport(readFileSync(report, 'utf8'))
  const failed = cases.filter(({ failure }) => failure !== '')
  assert.deepEqual(
    failed.map(({ name, failure }) => `${name}: ${failure}`),
    [],
    `${failed.length} of ${cases.length} failed`,
  )
  assert.equal(cases.length, CASES, `not every case ran; h2spec said:\n${output}`)
})

/** What h2spec printed. Its exit code says no more than the report does. */
function run(report: string): Promise<string> {
  const child = spawn(programs.h2spec, [
    ...['-t', '-k', '-h', '127.0.0.1', '-p', String(gateway.port), '-P', '/api/v1/pods'],
    ...['-o', String(CASE_TIMEOUT_SECONDS), '-j', report, '--strict'],
  ])
  endWithThisProcess(child)
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-10_000)
    })
  }
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', () => resolve(output))
  })
}

/** Cases of a JUnit report, as h2spec writes it. */
function readReport(xml: string): Case[] {
  return [...xml.matchAll(/<testcase ([^>]*?)(?:\/>|>([\s\S]*?)<\/testcase>)/g)].map(
    ([, attributes = '', body = '']) => {
      const attribute = (name: string): string => new RegExp(`\\b${name}="([^"]*)"`).exec(attributes)?.[1] ?? ''
      const isFailed = /<failure|<error/.test(body)
      const failure = isFailed
        ? body
            .replace(/<[^>]*>/g, ' ')
            .replace(/\s+/g, ' ')
            .trim() || 'failed'
        : ''
      return { name: `${attribute('package')} ${attribute('classname')}`, failure }
    },
  )
}
