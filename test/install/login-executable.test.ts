// The login for laptops as one executable, built for this machine: it logs in where there is no Node, and comes with checksums and a manifest for Krew.

import assert from 'node:assert/strict'
import { type SpawnSyncReturns, spawn, spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { after, before, describe, test } from 'node:test'
import { parse } from 'yaml'
import { PATIENT } from '../harness/patience.ts'
import { claimsOf, EXEC_INFO_TEXT } from '../harness/servers/login-runs.ts'
import { OIDC_CLIENT, type OidcIssuer, startOidcIssuer } from '../harness/servers/oidc-issuer.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const BROWSE = join(ROOT, 'test/harness/servers/browse.ts')
const PLATFORM = `${process.platform}-${process.arch}`
const skip = process.platform === 'linux' ? false : 'the executable of another system than Linux is signed by hand'

describe('the executable', { skip }, () => {
  const dir = mkdtempSync(join(tmpdir(), 'portcullis-executable-'))
  const program = join(dir, 'unpacked/portcullis')
  let issuer: OidcIssuer

  before(async () => {
    const { status, stderr } = build('--out', join(dir, 'out'), '--uri', 'https://example.com/download/')
    assert.equal(status, 0, stderr)
    const unpack = `mkdir ${dir}/unpacked && tar -xzf ${dir}/out/*.tar.gz -C ${dir}/unpacked`
    assert.equal(spawnSync('sh', ['-c', unpack]).status, 0)
    issuer = await startOidcIssuer({ people: { alice: { email: 'alice@example.com' } } })
  }, PATIENT)
  after(async () => {
    await issuer?.stop()
    rmSync(dir, { recursive: true, force: true })
  })

  function build(...args: readonly string[]): SpawnSyncReturns<string> {
    return spawnSync(process.execPath, [join(ROOT, 'build/login/build.ts'), ...args], { cwd: dir, encoding: 'utf8' })
  }

  /** Without Node on PATH, and whatever a developer has in NODE_OPTIONS. */
  function run(
    args: readonly string[],
    env: NodeJS.ProcessEnv = {},
  ): Promise<{ code: number; out: string; err: string }> {
    const own = { HOME: dir, PATH: '/none', NODE_OPTIONS: '--no-such-option', ...env }
    return new Promise((done) => {
      const child = spawn(program, args, { env: own, stdio: ['ignore', 'pipe', 'pipe'] })
      const [out, err]: [string[], string[]] = [[], []]
      child.stdout.setEncoding('utf8').on('data', (text: string) => void out.push(text))
      child.stderr.setEncoding('utf8').on('data', (text: string) => void err.push(text))
      child.once('close', (code) => done({ code: code ?? 1, out: out.join(''), err: err.join('') }))
    })
  }

  test('it logs in, and the next call has the token from its file', PATIENT, async () => {
    const browser = join(dir, 'browser')
    writeFileSync(
      browser,
      `#!/bin/sh\nexec env -u NODE_OPTIONS '${process.execPath}' '${BROWSE}' '${issuer.caFile}' "$1"\n`,
    )
    chmodSync(browser, 0o755)
    const args = [
      ...['login', `--issuer=${issuer.url}`, `--client-id=${OIDC_CLIENT}`, `--issuer-ca-file=${issuer.caFile}`],
      ...['--auth-param=login_hint=alice', '--flow=browser', `--browser-command=${browser}`],
    ]
    const first = await run(args, { KUBERNETES_EXEC_INFO: EXEC_INFO_TEXT, PATH: '/usr/bin:/bin' })
    assert.equal(first.code, 0, first.err)
    assert.equal(claimsOf(first.out)['email'], 'alice@example.com')
    const second = await run(args, { KUBERNETES_EXEC_INFO: EXEC_INFO_TEXT })
    assert.deepEqual(second, { ...first, err: '' })
    const out = await run(['logout', `--issuer-ca-file=${issuer.caFile}`, '--no-browser'])
    assert.match(out.out, /^alice@example\.com at \S+: logged out, the refresh token is revoked\n$/)
  })

  test('it has the version and the errors of the program, each in one line', PATIENT, async () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
    assert.deepEqual(await run(['--version']), { code: 0, out: `${version}\n`, err: '' })
    assert.match((await run(['login'])).err, /^error: --issuer is missing; [^\n]*\n$/)
    assert.match((await run(['serve'])).err, /^error: unknown command 'serve'\n/)
  })

  test('checksums and manifest are those of the archive', PATIENT, () => {
    const sums = spawnSync('sha256sum', ['--check', '--strict', 'SHA256SUMS'], {
      cwd: join(dir, 'out'),
      encoding: 'utf8',
    })
    assert.equal(sums.status, 0, sums.stderr)
    const { metadata, spec } = parse(readFileSync(join(dir, 'out/portcullis-login.yaml'), 'utf8'))
    assert.equal(metadata.name, 'portcullis-login')
    const [platform, ...others] = spec.platforms
    assert.deepEqual(others, [])
    const name = `portcullis-login-${spec.version.slice(1)}-${PLATFORM}.tar.gz`
    assert.equal(platform.uri, `https://example.com/download/${name}`)
    assert.equal(readFileSync(join(dir, 'out/SHA256SUMS'), 'utf8'), `${platform.sha256}  ${name}\n`)
    assert.equal(join(dir, 'unpacked', platform.bin), program)
  })

  test('what is not Node for the platform is refused, in one line', PATIENT, () => {
    const text = join(dir, 'text')
    writeFileSync(text, '#!/bin/sh\n')
    const shell = join(dir, 'shell')
    copyFileSync('/bin/sh', shell)
    const other = PLATFORM === 'linux-x64' ? 'linux-arm64' : 'linux-x64'
    for (const [args, problem] of [
      [['--node', 'linux-x64'], /^error: --node linux-x64 is not PLATFORM=FILE\n/],
      [['--node', `plan9-x64=${text}`], /^error: --node plan9-x64=\S+ is not PLATFORM=FILE\n/],
      [['--node', `${PLATFORM}=${text}`], /^error: --node \S+ is not a program for linux\n/],
      [['--node', `darwin-arm64=${process.execPath}`], /^error: --node \S+ is not a program for darwin\n/],
      [['--node', `${other}=${process.execPath}`], /^error: --node \S+ is a program for another processor\n/],
      [['--node', `${PLATFORM}=${shell}`], /^error: --node \S+ is not a Node that can carry a script\n/],
      [['--uri', 'http://example.com'], /^error: --uri "http:\/\/example\.com" is not an https/],
    ] as const) {
      const { status, stdout, stderr } = build('--out', join(dir, 'refused'), ...args)
      assert.deepEqual([status, stdout], [1, ''])
      assert.match(stderr, problem)
      assert.match(stderr, /^error: [^\n]*\nusage: [^\n]*\nPLATFORM: [^\n]*\n$/)
    }
  })
})
