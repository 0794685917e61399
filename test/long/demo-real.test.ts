// `portcullis demo --real`: the demo in front of real clusters starts, its guide on pod protection holds line by line, and
// nothing of it is left when it has ended.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { after, before, test } from 'node:test'
import {
  followDegradeGuide,
  followFederationGuide,
  followProtectionGuide,
  followScaleGuide,
  type RunLine,
  setMinReadySeconds,
  succeed,
} from '../harness/docs/demo-guide.ts'
import { followLoginGuide } from '../harness/docs/login-guide.ts'
import { type RunningProcess, startProcess } from '../harness/process.ts'

const MAIN = join(import.meta.dirname, '../../src/main.ts')
const ANY_PORT = '127.0.0.1:0'
const CLUSTERS = ['prod', 'staging']
let folder: string
let demo: RunningProcess

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'portcullis-demo-real-'))
  const ports = ['--listen', ANY_PORT, '--admin-listen', ANY_PORT, '--control-listen', ANY_PORT]
  const logFile = join(folder, 'demo.log')
  demo = await startProcess({
    name: 'portcullis demo --real',
    command: process.execPath,
    args: [MAIN, 'demo', '--real', ...ports, '--dir', join(folder, 'demo')],
    logFile,
    ready: () => readFileSync(logFile, 'utf8').includes('Ctrl-C stops everything.'),
    readyTimeoutMs: 300_000,
  })
})

after(async () => {
  await demo?.stop(60_000)
  rmSync(folder, { recursive: true, force: true })
})

test('every line of the guide on the degrade switch does what it says', async () => {
  await followDegradeGuide({ guide: demo.log(), kubeconfig: join(folder, 'demo/kubeconfig'), home: folder })
})

test('every line of the guide on pod protection does what it says', async () => {
  await followProtectionGuide({
    guide: demo.log(),
    kubeconfig: join(folder, 'demo/kubeconfig'),
    home: folder,
    holdNewPods,
  })
})

test('every line of the guide on scaling does what it says', async () => {
  await followScaleGuide({ guide: demo.log(), kubeconfig: join(folder, 'demo/kubeconfig'), home: folder })
})

test('every line of the guide on clusters read as one does what it says', async () => {
  await followFederationGuide({ guide: demo.log(), kubeconfig: join(folder, 'demo/kubeconfig'), home: folder })
})

test('every line of the guide on logins does what it says', async () => {
  const caFile = join(folder, 'demo/pki/ca.crt')
  await followLoginGuide({
    guide: demo.log(),
    kubeconfig: join(folder, 'demo/kubeconfig'),
    home: folder,
    caFile,
    ca: readFileSync(caFile, 'utf8'),
  })
})

test('Ctrl-C stops everything', async () => {
  const endpoints = [...demo.log().matchAll(/^ {2}(?:prod|staging) +(.*)$/gm)].flatMap(([, urls = '']) =>
    urls.split(/ +/),
  )
  assert.equal(endpoints.length, 4)
  const ports = endpoints.map((url) => Number(new URL(url).port))
  for (const port of ports) assert.equal(await isListening(port), true, `${port}`)
  assert.equal(await demo.stop(60_000, 'SIGINT'), 0, demo.log().slice(-2000))
  for (const port of ports) assert.equal(await isListening(port), false, `${port}`)
})

/** New pods stay Pending where no node takes any. */
async function holdNewPods(run: RunLine, hold: boolean): Promise<void> {
  await setMinReadySeconds(run, 1)
  for (const cluster of CLUSTERS) {
    if (hold) await succeed(run, `kubectl --context ${cluster}-alice rollout status deployment web --timeout 150s`)
    await succeed(run, `kubectl --context ${cluster}-admin ${hold ? 'cordon' : 'uncordon'} node-0 node-1`)
  }
  if (hold) {
    await succeed(
      run,
      "kubectl --context portcullis wait ppr web -n shop --for 'jsonpath={.status.summary.estimatedAvailableReplicas}=12'",
    )
  }
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', () => resolve(false))
  })
}
