// What `npm test` does first, on machines that lack this or that.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { afterEach, beforeEach, test } from 'node:test'
import { CRD_MODULES } from '../harness/clusters/third-party-crds.ts'
import { elapsedText, goBuild } from '../harness/go-build.ts'
import { PACKAGE_OF, planPackages } from '../harness/packages.ts'

const PREPARE = join(import.meta.dirname, '../harness/prepare.ts')
let folder: string
let bin: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'portcullis-prepare-'))
  bin = join(folder, 'bin')
  mkdirSync(bin)
})

afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** A program of the machine, as a shell script. */
function program(name: string, script = ''): void {
  writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`)
  chmodSync(join(bin, name), 0o755)
}

function tool(name: string): void {
  for (const dir of ['/usr/bin', '/bin'])
    if (existsSync(join(dir, name)) && !existsSync(join(bin, name))) symlinkSync(join(dir, name), join(bin, name))
}

/** On a machine that has nothing but what is in `bin`. */
function prepare(): { code: number | null; text: string } {
  const env = { PATH: bin, HOME: folder, XDG_CACHE_HOME: join(folder, 'cache') }
  const { status, stdout, stderr } = spawnSync(process.execPath, [PREPARE], {
    env,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  return { code: status, text: stdout + stderr }
}

/** Downloads a module, or writes what -o names. */
const go = (): string => `[ "$1" = version ] && exit 0
case "$4" in
${Object.values(CRD_MODULES)
  .map(({ module, version, sum }) => `${module}@${version}) echo '{"Dir":"${folder}/module","Sum":"${sum}"}'; exit 0;;`)
  .join('\n')}
esac
echo 'go: downloading example.com/module v1.0.0' >&2
echo example.com/module/package >&2
while [ "$1" != -o ]; do shift; done
echo built > "$2"`

test('without apt-get and Go: one line for each of them, and nothing is begun', () => {
  const { code, text } = prepare()
  assert.equal(code, 1)
  const lines = text.trim().split('\n')
  assert.equal(lines.length, 2, text)
  assert.match(
    lines[0] ?? '',
    /^tests need h2load, .*redis-server.*: install them .*nghttp2-client .*, then run this again$/,
  )
  assert.match(lines[1] ?? '', /^Go is not installed.*go\.dev/)
  assert.ok(!existsSync(join(folder, 'cache')))
})

test('packages come by apt-get, programs by Go, with what it builds, how long that takes and how far it is', () => {
  const installed = Object.keys(PACKAGE_OF).map(
    (name) => `printf '#!/bin/sh\\n' > ${bin}/${name}; chmod 755 ${bin}/${name}`,
  )
  // It makes a virtual environment whose Python is itself, and installs whatever it is told to.
  program('made-python3', 'if [ "$2" = venv ]; then mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; fi')
  installed.push(`cp ${bin}/made-python3 ${bin}/python3`)
  program('apt-get', `echo "apt-get $*" >> ${folder}/calls; [ "$1" = install ] && { ${installed.join('; ')}; }; exit 0`)
  // This test may run as root or not.
  program('sudo', 'exec "$@"')
  program('go', go())
  for (const { folder: crds } of Object.values(CRD_MODULES))
    mkdirSync(join(folder, 'module', crds), { recursive: true })
  for (const name of ['env', 'chmod', 'cp', 'mkdir']) tool(name)
  const { code, text } = prepare()
  assert.equal(code, 0, text)
  assert.match(
    readFileSync(join(folder, 'calls'), 'utf8'),
    /^apt-get update -q\napt-get install -qy --no-install-recommends .*jq/,
  )
  assert.match(text, /installing nghttp2-client, .*redis-server/)
  assert.match(text, /building etcd, kube-apiserver, .* with Go into .*, once: about \d minutes on two cores/)
  assert.match(text, /\[1\/12\] etcd \.\.\.\n\[1\/12\] etcd: done in \d+s\n\[2\/12\] kube-apiserver \.\.\./)
  assert.match(
    text,
    /built in \d+s\ndownloading sigs.k8s.io\/cluster-api v[\d.]+ with Go, once\n(downloading .* with Go, once\n){2}$/,
  )
  assert.ok(readdirSync(join(folder, 'cache/portcullis-test')).some((name) => name.startsWith('kwok-')))
  // The next run has nothing to say.
  assert.deepEqual(prepare(), { code: 0, text: '' })
})

test('a package that cannot be installed, and a build that fails, end with the output', () => {
  program('apt-get', 'echo "E: Unable to locate package" >&2; exit 100')
  program('sudo', 'exec "$@"')
  program(
    'go',
    `[ "$1" = version ] && exit 0; printf 'example.com/a/b\\n# example.com/a/b\\nx.go:1: broken\\n' >&2; exit 1`,
  )
  tool('env')
  const refused = prepare()
  assert.equal(refused.code, 1)
  assert.match(refused.text, /E: Unable to locate package\n.*apt-get update -q failed\n$/)
  for (const name of Object.keys(PACKAGE_OF)) program(name)
  const broken = prepare()
  assert.equal(broken.code, 1)
  assert.match(broken.text, /building etcd failed: # example\.com\/a\/b\nx\.go:1: broken\n$/)
})

test('without root and sudo it prints what to type as root', () => {
  const has = (name: string): boolean => name !== 'curl' && name !== 'nghttpd'
  const plan = planPackages({ has, isRoot: false, maySudo: () => false })
  assert.deepEqual(plan, {
    action: 'ask',
    line: 'tests need nghttpd, curl: as root, run: apt-get update && apt-get install --no-install-recommends nghttp2-server curl, then run this again',
  })
})

test('a build that takes its time says now and then how far it is', async () => {
  program(
    'go',
    `echo go: downloading example.com/m v1 >&2; echo example.com/m/p >&2; while [ ! -e ${folder}/go-on ]; do sleep 0.05; done`,
  )
  const path = process.env['PATH']
  process.env['PATH'] = `${bin}:${path}`
  try {
    const said: string[] = []
    const failure = await goBuild(
      [],
      folder,
      'thing',
      (line) => {
        said.push(line)
        if (/1 modules downloaded, 1 packages compiled, \d+s/.test(line)) writeFileSync(join(folder, 'go-on'), '')
      },
      20,
    )
    assert.equal(failure, '')
    assert.equal(said[0], 'thing ...')
    assert.match(said.at(-1) ?? '', /^thing: done in \d+s$/)
  } finally {
    process.env['PATH'] = path
  }
})

test('times are read at a glance', () => {
  assert.deepEqual([400, 59_400, 125_000].map(elapsedText), ['0s', '59s', '2m05s'])
})
