import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { demoGuide, type GuideFacts } from './guide.ts'
import { findKubectl } from './kubectl.ts'

let home: string

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'portcullis-kubectl-'))
})

afterEach(() => rmSync(home, { recursive: true, force: true }))

function install(folder: string): string {
  const path = join(home, folder)
  mkdirSync(path, { recursive: true })
  writeFileSync(join(path, 'kubectl'), '#!/bin/sh\n')
  chmodSync(join(path, 'kubectl'), 0o755)
  return path
}

const FACTS: GuideFacts = {
  dir: '.portcullis/demo',
  kubeconfig: '/demo/kubeconfig',
  origin: 'https://127.0.0.1:8443',
  adminPort: 9090,
  backends: [],
  login: undefined,
  service: { minAvailable: 9, minReadySeconds: 1, available: 12 },
  kubectl: { where: 'path' },
}

test('the kubectl on the PATH comes first, then the one that the tests have built', () => {
  assert.deepEqual(findKubectl({ PATH: join(home, 'bin') }, home), { where: 'nowhere' })
  const built = install('.cache/portcullis-test/kubectl-0123')
  assert.deepEqual(findKubectl({ PATH: join(home, 'bin') }, home), { where: 'folder', folder: built })
  const elsewhere = install('other/portcullis-test/kubectl-4567')
  const env = { PATH: join(home, 'bin'), XDG_CACHE_HOME: join(home, 'other') }
  assert.deepEqual(findKubectl(env, home), { where: 'folder', folder: elsewhere })
  install('bin')
  assert.deepEqual(findKubectl(env, home), { where: 'path' })
})

test('the guide puts the kubectl that the tests have built on the PATH', () => {
  const guide = demoGuide({ ...FACTS, kubectl: { where: 'folder', folder: '/cache/kubectl-0123' } })
  assert.match(guide, /^ {2}export PATH="\/cache\/kubectl-0123:\$PATH"/m)
  assert.doesNotMatch(demoGuide(FACTS), /export PATH/)
})

test('without a kubectl the guide says how to get one, and begins with what works without', () => {
  const guide = demoGuide({ ...FACTS, kubectl: { where: 'nowhere' } })
  const [, before = '', after = ''] = /^(.*?)\n {2}(kubectl .*)$/s.exec(guide) ?? []
  assert.match(
    before,
    /There is no kubectl on this machine\. Get it from https:\/\/kubernetes\.io\/\S+, or run `npm test`, which builds one/,
  )
  assert.match(before, /alice\(\) \{ curl/)
  assert.match(before, /bin\/portcullis degrade prod --mode Freeze/)
  assert.match(before, /bin\/portcullis explain/)
  assert.match(before, /bin\/portcullis check/)
  assert.match(after, /^kubectl /)
  // Nothing is left out.
  for (const line of demoGuide(FACTS).split('\n')) {
    if (/^ {2}(kubectl|bin|curl)/.test(line)) assert.ok(guide.includes(line), line)
  }
})
