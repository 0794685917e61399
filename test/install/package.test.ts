// The package as `npm pack` makes it, installed where there is nothing but it and a Node: no sources, no other packages.

import assert from 'node:assert/strict'
import { type SpawnSyncReturns, spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { parse, stringify } from 'yaml'
import { createCA } from '../../src/pki/io/pki.ts'
import { binaries } from '../harness/binaries.ts'
import { h2Connect, h2Request } from '../harness/clients/h2-client.ts'
import { type EmbeddedGateway, startEmbedded, UC_PATH } from '../harness/gateways/embedded.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import { PATIENT } from '../harness/patience.ts'
import { reply, startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const MAX_BYTES = 30e6
const clientCA = createCA({ commonName: 'clients of prod' })
let dir: string
/** What `npm pack` has built. */
let archive: string
/** Where npm has put the package. */
let installed: string
let env: NodeJS.ProcessEnv

before(() => {
  dir = mkdtempSync(join(tmpdir(), 'portcullis-package-'))
  env = { ...process.env, npm_config_update_notifier: 'false' }
  for (const name of ['NODE_TEST_CONTEXT', 'NODE_OPTIONS', 'NODE_V8_COVERAGE', 'KUBECONFIG']) delete env[name]
  const npm = (...args: readonly string[]): void => {
    const { status, stdout, stderr } = spawnSync('npm', args, { cwd: ROOT, env, encoding: 'utf8' })
    assert.equal(status, 0, `npm ${args.join(' ')}: ${stdout}${stderr}`)
  }
  npm('pack', '--pack-destination', dir)
  const [file = ''] = readdirSync(dir)
  archive = join(dir, file)
  npm('install', '--global', '--prefix', join(dir, 'prefix'), '--ignore-scripts', '--offline', archive)
  installed = join(dir, 'prefix/lib/node_modules/portcullis')
  // Node as any machine may have it, and nothing of this checkout.
  env['PATH'] = [join(dir, 'prefix/bin'), dirname(process.execPath), '/usr/bin', '/bin'].join(':')
}, PATIENT)
after(() => rmSync(dir, { recursive: true, force: true }))

function run(command: string, args: readonly string[], more: NodeJS.ProcessEnv = {}): SpawnSyncReturns<string> {
  return spawnSync(command, args, { cwd: dir, env: { ...env, ...more }, encoding: 'utf8', timeout: 60_000 })
}

function files(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
    lstatSync(join(folder, name)).isFile(),
  )
}

describe('what is in it', () => {
  test('the program, its licences, pages and manifests; no sources, tests, bench or other packages', PATIENT, () => {
    const all = files(installed)
    assert.deepEqual(
      [...new Set(all.map((name) => name.split('/')[0] ?? ''))].sort(),
      ['CHANGELOG.md', 'LICENSE', 'README.md', 'bin', 'deploy', 'dist', 'docs', 'package.json'].sort(),
    )
    assert.deepEqual(
      all.filter((name) => /\.tsx?$|\.test\.|node_modules/.test(name)),
      [],
    )
    const bytes = all.reduce((sum, name) => sum + lstatSync(join(installed, name)).size, 0)
    assert.ok(bytes < MAX_BYTES, `${bytes} bytes`)
    // As the page says it, or about so: a number that is right once is wrong a year later.
    const told = /portcullis-\d\S*\.tgz, ([\d.]+) MB$/m.exec(readFileSync(join(ROOT, 'docs/install.md'), 'utf8'))
    const packed = lstatSync(archive).size / 1e6
    assert.ok(
      Math.abs(packed - Number(told?.[1])) < 0.1 * packed,
      `docs/install.md says ${told?.[1]} MB, it is ${packed}`,
    )
    const { dependencies } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'))
    assert.equal(dependencies, undefined, 'all that it loads is in dist')
  })

  test(
    'every package of decision 5 that is bundled comes with its licence, and no folder of the builder is named',
    PATIENT,
    () => {
      const licences = readFileSync(join(installed, 'dist/THIRD_PARTY_LICENSES'), 'utf8')
      const decision = readFileSync(join(ROOT, 'docs/decisions/0005-run-time-dependencies.md'), 'utf8')
      const own = [...decision.matchAll(/^\| `([^`]+)` \|/gm)].map((match) => match[1] ?? '')
      const table = own.slice(0, own.indexOf('uplot') + 1).filter((name) => !/^node(:|$)/.test(name))
      assert.ok(table.length > 5, decision)
      for (const name of table) assert.match(licences, new RegExp(`^${name} \\d`, 'm'))
      for (const name of files(join(installed, 'dist'))) {
        const text = readFileSync(join(installed, 'dist', name), 'utf8')
        assert.ok(!text.includes(ROOT), `dist/${name} names ${ROOT}`)
      }
    },
  )

  test('no module of it imports node:http as Node has it, which loads undici in each process and thread', () => {
    for (const name of files(join(installed, 'dist')).filter((file) => file.endsWith('.mjs'))) {
      assert.doesNotMatch(readFileSync(join(installed, 'dist', name), 'utf8'), /^(import|\}) .*"(node:)?http";$/m, name)
    }
  })
})

describe('without a Node that can run it', () => {
  function withNode(script: string | undefined): NodeJS.ProcessEnv {
    const folder = mkdtempSync(join(dir, 'path-'))
    for (const tool of ['sh', 'readlink', 'dirname']) {
      writeFileSync(join(folder, tool), `#!/bin/sh\nexec /usr/bin/env -u PATH /bin/${tool} "$@"\n`, { mode: 0o755 })
    }
    if (script !== undefined) writeFileSync(join(folder, 'node'), script, { mode: 0o755 })
    return { PATH: folder }
  }

  for (const [what, script, says] of [
    [
      'an older one',
      '#!/bin/sh\necho v20.19.4\n',
      /^error: portcullis needs Node\.js 24 or newer, and \S+\/node is v20\.19\.4; put a newer one first on PATH\n$/,
    ],
    [
      'one that does not start',
      '#!/bin/sh\nexit 127\n',
      /^error: portcullis needs Node\.js 24 or newer, and \S+\/node is broken; put a newer one first on PATH\n$/,
    ],
    ['none', undefined, /^error: portcullis needs Node\.js 24 or newer, and there is no node on PATH; install it\n$/],
  ] as const) {
    test(`${what}: one line, exit code 1`, PATIENT, () => {
      const { status, stdout, stderr } = run(join(installed, 'bin/portcullis'), ['--version'], withNode(script))
      assert.match(stderr, says)
      assert.deepEqual([status, stdout], [1, ''])
    })
  }
})

test('Node gets the flags of the program, and of its helper threads as many as NODE_OPTIONS says', PATIENT, () => {
  const folder = mkdtempSync(join(dir, 'flags-'))
  const script = '#!/bin/sh\n[ "$1" = --version ] && echo v24.20.0 || echo "$@"\n'
  writeFileSync(join(folder, 'node'), script, { mode: 0o755 })
  const flags = (options: string): string => {
    const variables = { PATH: `${folder}:/usr/bin:/bin`, NODE_OPTIONS: options }
    return run(join(installed, 'bin/portcullis'), ['serve'], variables).stdout.replace(/ \S+main\.mjs/, '')
  }
  assert.equal(flags(''), '--max-semi-space-size=16 --v8-pool-size=1 serve\n')
  assert.equal(flags('--v8-pool-size=4'), '--max-semi-space-size=16 serve\n')
})

describe('installed', () => {
  let gateway: EmbeddedGateway

  before(async () => {
    const program = ['portcullis'] as const
    const path = { PATH: env['PATH'] ?? '', PORTCULLIS_TEST_THREADS: '2' }
    gateway = await startEmbedded({ program, env: path })
  }, PATIENT)
  after(() => gateway.stop())

  test('each command can be loaded', PATIENT, () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
    assert.equal(run('portcullis', ['--version']).stdout, `${version}\n`)
    const { status, stderr } = run('portcullis', ['check', join(installed, 'dist/config/clusters'), '--no-secrets'])
    assert.deepEqual([status, stderr], [0, ''])
    const made = run('portcullis', ['certs', 'init', '--dir', join(dir, 'made'), '--host', 'gateway.example.com'])
    assert.equal(made.status, 0, made.stderr)
    assert.ok(existsSync(join(dir, 'made/ca.crt')))
  })

  test(
    'serve has two threads, forwards a request, and degrade through kubectl’s name and a credential plugin stops it',
    PATIENT,
    async () => {
      const stub = await startStub()
      const alice = clientPair(clientCA, 'alice')
      try {
        const { code, text } = await gateway.admin.post(UC_PATH, clusterObject([stub], { clientCA }))
        assert.equal(code, 201, text)
        const ask = async (method: string) => {
          const session = h2Connect({ port: gateway.gateway.port, serverName: 'prod.example.com', certificate: alice })
          try {
            return await h2Request(session, [
              ...[':method', method, ':path', '/api/v1/namespaces/default/pods'],
              ...[':authority', 'prod.example.com'],
            ])
          } finally {
            session.destroy()
          }
        }
        stub.answer = (seen) => reply(seen, 200, '{"kind":"PodList"}')
        const answer = await waitFor('an answer of the cluster', async () => {
          const got = await ask('GET')
          return got.status === 200 && got
        })
        assert.equal(answer.body.toString(), '{"kind":"PodList"}')
        const dump = JSON.parse((await gateway.gateway.admin('/debug/config')).text)
        assert.equal(dump.threads.length, 2)
        assert.match(await gateway.gateway.metrics(), /^portcullis_build_info\{[^}]*build="bundle"[^}]*\} 1$/m)

        const kubeconfig = withPlugin()
        const args = [
          'degrade',
          'prod.example.com',
          '--mode',
          'ReadOnly',
          '--reason',
          'drill',
          '--kubeconfig',
          kubeconfig,
        ]
        const degrade = run('kubectl-portcullis', args)
        assert.equal(degrade.status, 0, degrade.stderr)
        assert.match(degrade.stdout, /^prod\.example\.com: degrade mode ReadOnly/)
        const refused = await waitFor('the refusal', async () => {
          const got = await ask('POST')
          return got.status === 503 && got
        })
        assert.match(refused.body.toString(), /drill/)
      } finally {
        await stub.stop()
      }
    },
  )

  test('kubectl runs it as a plugin, passes its exit code on, and completes it', PATIENT, async () => {
    const kubectl = (await binaries()).kubectl
    const good = run(kubectl, ['portcullis', 'degrade', '--help'])
    assert.deepEqual([good.status, good.stderr], [0, ''])
    assert.match(good.stdout, /^Usage: kubectl portcullis degrade /)
    const bad = run(kubectl, ['portcullis', 'degrade'])
    assert.equal(bad.status, 1)
    assert.match(bad.stderr, /^error: no cluster is named; name one or several/)
    const words = ['portcullis', 'degrade', 'prod', '--mode', 'Hea']
    assert.match(run(kubectl, ['__complete', ...words]).stdout, /^HeartbeatsOnly\n:4\n/)
  })

  test('Krew installs it from the archive, by a manifest that is made for it', PATIENT, async () => {
    const uri = 'https://example.com/portcullis.tgz'
    const made = krew('--archive', archive, '--uri', uri)
    assert.deepEqual([made.status, made.stderr], [0, ''])
    const { apiVersion, kind, metadata, spec } = parse(made.stdout)
    assert.deepEqual([apiVersion, kind], ['krew.googlecontainertools.github.com/v1alpha2', 'Plugin'])
    assert.equal(metadata.name, 'portcullis')
    assert.equal(spec.version, `v${run('portcullis', ['--version']).stdout.trim()}`)
    const [platform, ...others] = spec.platforms
    assert.deepEqual(others, [])
    assert.equal(platform.uri, uri)
    assert.equal(`${platform.sha256}  ${archive}\n`, run('sha256sum', [archive]).stdout)
    // No Krew runs here: its steps, which are to unpack, to move `files`, and to link `bin` under the plugin's name.
    const unpacked = join(dir, 'krew/unpacked')
    const store = join(dir, 'krew/store')
    const onPath = join(dir, 'krew/bin')
    for (const folder of [unpacked, store, onPath]) mkdirSync(folder, { recursive: true })
    assert.equal(run('tar', ['-xzf', archive, '-C', unpacked]).status, 0)
    for (const { from, to } of platform.files) {
      assert.equal(run('sh', ['-c', `mv ${unpacked}/${from} ${join(store, to)}`]).status, 0)
    }
    symlinkSync(join(store, platform.bin), join(onPath, `kubectl-${metadata.name}`))
    const PATH = [onPath, dirname(process.execPath), '/usr/bin', '/bin'].join(':')
    const { kubectl } = await binaries()
    const version = run(kubectl, ['portcullis', 'version'], { PATH })
    assert.deepEqual([version.status, version.stderr], [0, ''])
    assert.equal(run(kubectl, ['portcullis', 'degrade'], { PATH }).status, 1)
  })

  test('a manifest for Krew is refused without what only the release knows, in one line', PATIENT, () => {
    for (const [args, problem] of [
      [[], /^error: --archive is missing: /],
      [['--archive', archive], /^error: --uri "" is not an https:\/\/ URL: /],
      [['--archive', archive, '--uri', 'http://example.com/a.tgz'], /^error: --uri "http:[^"]*" is not an https/],
      [['--archive', join(dir, 'none.tgz'), '--uri', 'https://example.com/a.tgz'], /^error: .*none\.tgz/],
      [['--unknown'], /^error: Unknown option '--unknown'/],
    ] as const) {
      const { status, stdout, stderr } = krew(...args)
      assert.deepEqual([status, stdout], [1, ''])
      assert.match(stderr, problem)
      assert.equal(stderr.split('\n').length, 3, stderr)
    }
  })

  function krew(...args: readonly string[]): SpawnSyncReturns<string> {
    return spawnSync(process.execPath, [join(ROOT, 'build/krew.ts'), ...args], { cwd: dir, env, encoding: 'utf8' })
  }

  test('bash and zsh complete commands, values, and names of clusters', PATIENT, () => {
    const bash = (...words: readonly string[]): string => {
      const script = `source <(portcullis completion bash)
        COMP_WORDS=(${words.map((word) => JSON.stringify(word)).join(' ')}); COMP_CWORD=${words.length - 1}
        _portcullis; printf '%s\\n' "\${COMPREPLY[@]}"`
      return run('bash', ['-c', script]).stdout
    }
    const zsh = (...words: readonly string[]): string => {
      // The functions of zsh's own completion, which needs a terminal.
      const script = `compdef() { : }; _files() { print files }; _describe() { print -l -- "\${(@P)2}" }
        source <(portcullis completion zsh)
        words=(${words.map((word) => JSON.stringify(word)).join(' ')}); CURRENT=${words.length}; _portcullis`
      return run('zsh', ['-f', '-c', script]).stdout
    }
    assert.equal(bash('portcullis', 'deg'), 'degrade\n')
    assert.equal(bash('portcullis', 'degrade', 'prod', '--mode', 'Hea'), 'HeartbeatsOnly\n')
    assert.match(zsh('portcullis', 'deg'), /^degrade:set the degrade mode/)
    assert.equal(zsh('portcullis', 'degrade', 'prod', '--mode', 'Hea'), 'HeartbeatsOnly\n')
    assert.equal(zsh('portcullis', 'serve', '--tls-cert-file', ''), 'files\n')
    const ofGateway = ['degrade', '--kubeconfig', gateway.kubeconfig, '']
    assert.equal(bash('portcullis', ...ofGateway), 'prod.example.com\n')
    assert.equal(zsh('portcullis', ...ofGateway), 'prod.example.com\n')
  })

  /** The administrator's kubeconfig, whose certificate comes from a plugin now, as those of cloud providers do. */
  function withPlugin(): string {
    const config = parse(readFileSync(gateway.kubeconfig, 'utf8'))
    const { user } = config.users[0]
    const status = {
      clientCertificateData: Buffer.from(user['client-certificate-data'], 'base64').toString(),
      clientKeyData: Buffer.from(user['client-key-data'], 'base64').toString(),
    }
    const apiVersion = 'client.authentication.k8s.io/v1'
    const folder = join(dir, 'plugin')
    mkdirSync(folder)
    writeFileSync(join(folder, 'credential.json'), JSON.stringify({ apiVersion, kind: 'ExecCredential', status }))
    writeFileSync(join(folder, 'plugin'), '#!/bin/sh\nexec cat "$(dirname "$0")/credential.json"\n')
    chmodSync(join(folder, 'plugin'), 0o755)
    config.users[0].user = { exec: { apiVersion, command: './plugin', interactiveMode: 'Never' } }
    const file = join(folder, 'kubeconfig')
    writeFileSync(file, stringify(config))
    return file
  }
})
