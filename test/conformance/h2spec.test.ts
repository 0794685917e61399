// h2spec (https://github.com/summerwind/h2spec), all of it, against the gateway: it checks RFC 9113's forerunner and RFC 7541 section by section.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { binaries } from '../harness/binaries.ts'
import { startInProcess } from '../harness/gateways/in-process.ts'
import { clusterObject } from '../harness/objects/objects.ts'
import { PATIENT } from '../harness/patience.ts'
import { endWithThisProcess } from '../harness/process.ts'
import { reply, startStub } from '../harness/upstreams/stub-upstream.ts'

/** What h2spec 2.2.1 has, the strict one included; fewer would mean that some were not run. */
const CASES = 146
/** How long h2spec waits for an answer before a case has failed, seconds. Generous: a busy machine must not fail it. */
const CASE_TIMEOUT_SECONDS = 10
/**
 * Some cases send two frames and want the answer to the second. Where the machine lets h2spec write the second too late, the
 * request has been answered by then, and the frame is rightly ignored: such a case is run again.
 */
const RUNS_AGAIN = 3
let reports = 0

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

test('every case passes', PATIENT, async () => {
  stub.answer = (request) => {
    request.stream.resume()
    reply(request, 200, JSON.stringify({ kind: 'PodList', items: ['x'.repeat(1000)] }))
  }
  const { cases, output } = await run([])
  let failed = cases.filter(({ failure }) => failure !== '')
  for (let again = 0; again < RUNS_AGAIN && failed.length > 0; again++) {
    const sections = [...new Set(failed.map(sectionOf))]
    const passed = new Set((await run(sections)).cases.filter(({ failure }) => failure === '').map(({ name }) => name))
    failed = failed.filter(({ name }) => !passed.has(name))
  }
  assert.deepEqual(
    failed.map(({ name, failure }) => `${name}: ${failure}`),
    [],
    `${failed.length} of ${cases.length} failed`,
  )
  assert.equal(cases.length, CASES, `not every case ran; h2spec said:\n${output}`)
})

/** `http2/5.1 closed: Sends a HEADERS frame`: http2/5.1. */
function sectionOf({ name }: Case): string {
  return name.split(' ', 1)[0] ?? ''
}

/** Runs these sections, or all. h2spec's exit code says no more than its report does. */
async function run(sections: readonly string[]): Promise<{ cases: Case[]; output: string }> {
  const report = join(folder, `report-${reports++}.xml`)
  const output = await runProgram(report, sections)
  return { cases: readReport(readFileSync(report, 'utf8')), output }
}

function runProgram(report: string, sections: readonly string[]): Promise<string> {
  const child = spawn(programs.h2spec, [
    ...['-t', '-k', '-h', '127.0.0.1', '-p', String(gateway.port), '-P', '/api/v1/pods'],
    ...['-o', String(CASE_TIMEOUT_SECONDS), '-j', report, '--strict', ...sections],
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
