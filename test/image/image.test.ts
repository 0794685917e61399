// The image, built from the Dockerfile and run as a cluster would: what is in it, that it needs nothing but its data directory, and
// that it drains.

import assert from 'node:assert/strict'
import { lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import type { ClientHttp2Session } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { parse } from 'yaml'
import { errorMessage } from '../../src/kit/api/validation/error-message.ts'
import { createCA } from '../../src/pki/io/pki.ts'
import { ControlClient } from '../harness/clients/control-client.ts'
import { h2Connect, h2Request } from '../harness/clients/h2-client.ts'
import type { TestControl } from '../harness/gateways/control.ts'
import { UC_PATH } from '../harness/gateways/embedded.ts'
import { LOCAL_SERVERS_FLAG } from '../harness/gateways/local-servers.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import { PATIENT } from '../harness/patience.ts'
import { freePorts } from '../harness/ports.ts'
import { reply, type SeenRequest, type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'
import { COMMIT, COMMIT_DATE, createImageFactory, run } from './built-image.ts'
import { type Container, DATA_DIR, startContainer } from './container.ts'

const ROOT = join(import.meta.dirname, '../..')
const root = { skip: process.getuid?.() === 0 ? false : 'building an image without a daemon needs root' }

describe('the image', root, () => {
  let dir: string
  let ids: readonly string[]
  let layout: string
  let bundle: string

  before(() => {
    dir = mkdtempSync(join(tmpdir(), 'portcullis-image-'))
    const factory = createImageFactory(dir)
    ids = ['first', 'second'].map((name) => factory.build(name))
    layout = factory.push('first')
    bundle = join(dir, 'bundle')
    run('umoci', ['unpack', '--image', `${layout}:test`, bundle])
  }, PATIENT)
  after(() => rmSync(dir, { recursive: true, force: true }))

  test('built twice, with the same timestamp: the same digests', PATIENT, () => {
    assert.match(ids[0] ?? '', /^sha256:[0-9a-f]{64}$/)
    assert.equal(ids[0], ids[1])
  })

  test(
    'its configuration: a numeric user, an entry point without a shell, a volume, labels, no health check',
    PATIENT,
    () => {
      const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
      const { config } = imageConfig(layout)
      const { Labels, ...rest } = config
      assert.deepEqual(rest, {
        User: '65532:65532',
        ExposedPorts: { '8443/tcp': {}, '9443/tcp': {} },
        Env: [
          'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
          `PORTCULLIS_DATA_DIR=${DATA_DIR}`,
          'NODE_OPTIONS=--v8-pool-size=1',
        ],
        Entrypoint: ['/usr/local/bin/portcullis'],
        Cmd: ['serve'],
        Volumes: { [DATA_DIR]: {} },
      })
      const label = (name: string): unknown => Labels[`org.opencontainers.image.${name}`]
      assert.deepEqual(['title', 'version', 'revision', 'created', 'licenses'].map(label), [
        'portcullis',
        version,
        COMMIT,
        COMMIT_DATE,
        'Apache-2.0',
      ])
    },
  )

  test(
    'its files: those of the base, one Node, the bundle with its bill of materials, an empty data directory',
    PATIENT,
    () => {
      const base = new Set(filesOf(join(dir, 'context/base')))
      const added = filesOf(join(bundle, 'rootfs')).filter((name) => !base.has(name))
      const places = new Set(added.map((name) => name.replace(/^(opt\/portcullis\/dist)\/.*/, '$1')))
      assert.deepEqual([...places].sort(), [
        'opt/portcullis/LICENSE',
        'opt/portcullis/dist',
        'usr/local/bin/node',
        'usr/local/bin/portcullis',
      ])
      assert.ok(added.includes('opt/portcullis/dist/sbom.cdx.json'))
      assert.deepEqual(readdirSync(join(bundle, 'rootfs', DATA_DIR)), [])
      const { uid, gid } = lstatSync(join(bundle, 'rootfs', DATA_DIR))
      assert.deepEqual([uid, gid], [65532, 65532])
      assert.equal(lstatSync(join(bundle, 'rootfs/var/lib')).uid, 0, 'nothing else is the program’s own')
    },
  )

  describe('run with a read-only root, no capabilities and a seccomp profile', () => {
    const clientCA = createCA({ commonName: 'clients of prod' })
    let container: Container
    let admin: string
    let port: number
    let controlPort: number
    let stub: StubUpstream
    let filesBefore: readonly string[]

    before(async () => {
      stub = await startStub()
      filesBefore = filesOf(join(bundle, 'rootfs'))
      const [listen = 0, adminListen = 0, control = 0] = await freePorts(3)
      port = listen
      controlPort = control
      admin = `http://127.0.0.1:${adminListen}`
      container = await startContainer({
        dir,
        bundle,
        args: [
          'serve',
          '--threads=2',
          `--listen=127.0.0.1:${listen}`,
          `--admin-listen=127.0.0.1:${adminListen}`,
          `--control-listen=127.0.0.1:${control}`,
          LOCAL_SERVERS_FLAG,
        ],
        ready: async () => (await fetch(`${admin}/readyz`)).ok,
      })
    }, PATIENT)
    after(async () => {
      container?.remove()
      await stub?.stop()
    })

    test('PID 1 is the program, as user 65532, with nothing that it could gain', PATIENT, () => {
      const status = readFileSync(`/proc/${container.pid}/status`, 'utf8')
      const field = (name: string): string => new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(status)?.[1] ?? ''
      assert.match(field('NSpid'), /\s1$/)
      assert.match(field('Uid'), /^65532\s+65532\s+65532\s+65532$/)
      assert.match(field('Gid'), /^65532\s+65532\s+65532\s+65532$/)
      for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb']) assert.match(field(set), /^0+$/, set)
      assert.deepEqual([field('NoNewPrivs'), field('Seccomp')], ['1', '2'])
    })

    test('the build says what it was made from, by the command that an exec probe would run', PATIENT, () => {
      const { code, output } = container.exec('portcullis', 'version', '-o', 'json')
      assert.equal(code, 0, output)
      const { gitCommit, commitDate, build, nodeVersion } = JSON.parse(output)
      assert.deepEqual([gitCommit, commitDate, build, nodeVersion], [COMMIT, COMMIT_DATE, 'bundle', process.version])
      assert.deepEqual(container.exec('portcullis', 'probe', `${admin}/readyz`), { code: 0, output: 'ok\n' })
      assert.equal(container.exec('portcullis', 'probe', `${admin}/nothing`).code, 1)
    })

    test('it serves, writes to its data directory only, and PID 1 drains on SIGTERM', PATIENT, async () => {
      const data = `/proc/${container.pid}/root${DATA_DIR}`
      const { clusters, users } = parse(readFileSync(join(data, 'control/pki/admin.kubeconfig'), 'utf8'))
      const decoded = (base64: string): string => Buffer.from(base64, 'base64').toString()
      const caPem = decoded(clusters[0].cluster['certificate-authority-data'])
      const { user } = users[0]
      const cert = {
        certPem: decoded(user['client-certificate-data']),
        keyPem: decoded(user['client-key-data']),
      }
      // These two are all that it asks for.
      const client = new ControlClient({ port: controlPort, caPem } as TestControl, { cert })
      const created = await client.post(UC_PATH, clusterObject([stub], { clientCA }))
      assert.equal(created.code, 201, created.text)
      client.close()

      let held: SeenRequest | undefined
      stub.answer = (seen) => {
        if (seen.path.endsWith('/slow')) held = seen
        else reply(seen, 200, '{"kind":"PodList"}')
      }
      const certificate = clientPair(clientCA, 'alice')
      const ask = (over: ClientHttp2Session, path: string) =>
        h2Request(over, [':method', 'GET', ':path', path, ':authority', 'prod.example.com'])
      let last = ''
      // On a connection of its own each time: one that was opened before the cluster was in force was not asked for a certificate.
      const session = await waitFor('an answer of the cluster', async () => {
        const opened = h2Connect({ port, serverName: 'prod.example.com', certificate })
        const { status, body } = await ask(opened, '/api/v1/pods')
        if (status === 200) return opened
        last = `${status} ${body.toString()}`
        opened.destroy()
        return undefined
      }).catch((error: unknown) => assert.fail(`${errorMessage(error)}: ${last}; ${container.process.log()}`))
      const slow = ask(session, '/api/v1/namespaces/default/pods/slow')
      const request = await waitFor('the request at the cluster', () => held)

      container.signal('TERM')
      await waitFor('readyz to fail', async () => (await fetch(`${admin}/readyz`)).status === 500)
      assert.ok(container.process.running, 'it waits for what is running')
      reply(request, 200, '{"kind":"Pod"}')
      assert.equal((await slow).body.toString(), '{"kind":"Pod"}')
      session.destroy()
      assert.equal(await container.process.exited, 0, container.process.log())
      assert.deepEqual(filesOf(join(bundle, 'rootfs')), filesBefore)
    })
  })

  test(
    'what the systemd unit allows is enough, too: its system calls, /proc of processes, a read-only root',
    PATIENT,
    async () => {
      const [adminListen = 0] = await freePorts(1)
      const admin = `http://127.0.0.1:${adminListen}`
      const args = [
        'serve',
        '--listen=127.0.0.1:0',
        '--control-listen=127.0.0.1:0',
        `--admin-listen=127.0.0.1:${adminListen}`,
      ]
      const ready = async (): Promise<boolean> => (await fetch(`${admin}/readyz`)).ok
      const container = await startContainer({ dir, bundle, args, unitSyscalls: unitSyscalls(), ready })
      try {
        assert.match(readFileSync(`/proc/${container.pid}/status`, 'utf8'), /^Seccomp:\s*2$/m)
        container.signal('TERM')
        assert.equal(await container.process.exited, 0, container.process.log())
      } finally {
        container.remove()
      }
    },
  )
})

/** Paths of all that is not a folder. */
function filesOf(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => !lstatSync(join(folder, name)).isDirectory())
    .sort()
}

function imageConfig(layout: string): {
  readonly config: Record<string, unknown> & { Labels: Record<string, string> }
} {
  const blob = (digest: string): string => readFileSync(join(layout, 'blobs', digest.replace(':', '/')), 'utf8')
  const [manifest] = JSON.parse(readFileSync(join(layout, 'index.json'), 'utf8')).manifests
  return JSON.parse(blob(JSON.parse(blob(manifest.digest)).config.digest))
}

/** What SystemCallFilter= of the unit lets through: one list, less another one, and what systemd always allows. */
function unitSyscalls(): readonly string[] {
  const unit = readFileSync(join(ROOT, 'deploy/systemd/portcullis.service'), 'utf8')
  const [allowed = '', denied = ''] = [...unit.matchAll(/^SystemCallFilter=~?(.*)$/gm)].map(([, names = '']) => names)
  const without = new Set(denied.split(' ').flatMap(expandFilter))
  const names = allowed.split(' ').flatMap(expandFilter)
  assert.ok(names.length > 100 && without.size > 20, 'the unit has both lists')
  return [...new Set([...names.filter((name) => !without.has(name)), ...expandFilter('@default')])]
}

/** `@process` and the like, as systemd knows them. */
function expandFilter(name: string): readonly string[] {
  if (!name.startsWith('@')) return [name]
  const lines = run('systemd-analyze', ['syscall-filter', '--no-pager', name]).split('\n').slice(1)
  const members = lines.map((line) => line.trim()).filter((line) => line !== '' && !line.startsWith('#'))
  return members.flatMap(expandFilter)
}
