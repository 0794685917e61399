// The CA that replicas share through the API server of the objects: whether they come first, together or late, all have one.

import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { controlPaths } from '../../src/gateway/io/listener/control-paths.ts'
import { ensureServingCertificate, servingPkiDir } from '../../src/gateway/io/listener/serving-certificate.ts'
import type { Logger } from '../../src/kit/api/ports.ts'
import { UserError } from '../../src/kit/api/validation/field-errors.ts'
import { toBase64 } from '../../src/kit/core/text/base64.ts'
import { redact } from '../../src/kit/core/text/redact.ts'
import { NAMESPACES } from '../../src/kube/api/kinds/namespace-kind.ts'
import { SECRETS } from '../../src/kube/api/kinds/secret-kind.ts'
import { statusError } from '../../src/kube/api/status.ts'
import { createCA, issueCertificate, type KeyPair } from '../../src/pki/io/pki.ts'
import { readKeyPair, writeKeyPair } from '../../src/pki/io/pki-files.ts'
import { shareCA } from '../../src/pki/io/shared-ca.ts'
import type { SharedCA } from '../../src/pki/io/shared-ca-secret.ts'
import { followSharedPki, sharePki } from '../../src/process/certificates/shared-pki.ts'
import { loadConfig } from '../../src/process/config/config.ts'
import { MemoryObjects } from '../harness/objects/memory-objects.ts'
import { waitFor } from '../harness/wait.ts'

const NAMESPACE = 'portcullis-system'
const quiet = (): void => undefined
let objects: MemoryObjects
let warnings: string[]
let dirs: string[]
/** The log lines that name a Secret, as they are written. */
let namedSecrets: unknown[]
let log: Logger

beforeEach(() => {
  objects = new MemoryObjects()
  warnings = []
  namedSecrets = []
  dirs = []
  const note = (fields: Record<string, unknown> = {}): void => {
    for (const [name, value] of Object.entries(Object(redact(fields))))
      if (/secret/i.test(name)) namedSecrets.push(value)
  }
  log = {
    debug: quiet,
    info: (_, fields) => note(fields),
    warn: (message, fields) => {
      warnings.push(message)
      note(fields)
    },
    error: quiet,
  }
})
afterEach(() => {
  for (const dir of dirs) rmSync(dir, { recursive: true, force: true })
})

function dataDir(): string {
  const dir = mkdtempSync(join(tmpdir(), 'portcullis-'))
  dirs.push(dir)
  return dir
}

function caIn(dir: string): SharedCA {
  let made = 0
  return {
    namespace: NAMESPACE,
    name: 'ca',
    dir: servingPkiDir(dir),
    commonName: 'shared',
    files: { 'token.key': { make: () => `key ${dir} ${++made}`, check: checkKey } },
    otherwise: 'do without',
    required: true,
  }
}

function checkKey(text: string): void {
  if (!text.startsWith('key ')) throw new Error('this is no key')
}

function pairIn(dir: string, name = 'ca'): KeyPair | undefined {
  return readKeyPair(servingPkiDir(dir), name)
}

function read(dir: string, file: string): string {
  return readFileSync(join(servingPkiDir(dir), file), 'utf8')
}

test('replicas that start together have one CA, each a certificate of it, and one key of tokens', async () => {
  const replicas = [dataDir(), dataDir(), dataDir()]
  await Promise.all(replicas.map((dir) => shareCA(objects, caIn(dir), log)))
  const [first = ''] = replicas
  for (const dir of replicas) {
    assert.deepEqual(pairIn(dir), pairIn(first))
    assert.equal(read(dir, 'token.key'), read(first, 'token.key'))
    assert.equal(statSync(join(servingPkiDir(dir), 'token.key')).mode & 0o777, 0o600)
    const { certPem } = ensureServingCertificate(dir, true)
    assert.equal(pairIn(dir, 'tls')?.certPem, certPem)
  }
  assert.equal(objects.writes.filter((write) => write.startsWith('create secrets')).length, 1)
  // Again, as after a restart.
  const before = read(first, 'tls.crt')
  await shareCA(objects, caIn(first), log)
  assert.equal(ensureServingCertificate(first, true).certPem, before)
  assert.deepEqual(warnings, [])
})

test('the CA of a gateway from before becomes that of all; another replica gives up its own and what it issued', async () => {
  const [first, second] = [dataDir(), dataDir()]
  for (const dir of [first, second]) ensureServingCertificate(dir)
  const trusted = pairIn(first)
  const leaf = pairIn(first, 'tls')
  // Put there by an administrator, of another CA.
  const foreign = issueCertificate(createCA({ commonName: 'theirs' }), { commonName: 'admin', usage: 'client' })
  writeKeyPair(servingPkiDir(second), 'admin', foreign)
  await shareCA(objects, caIn(first), log)
  await shareCA(objects, caIn(second), log)
  for (const dir of [first, second]) {
    ensureServingCertificate(dir, true)
    assert.deepEqual(pairIn(dir), trusted)
  }
  assert.deepEqual(pairIn(first, 'tls'), leaf)
  assert.deepEqual(pairIn(second, 'admin'), foreign)
  assert.deepEqual(warnings, ['the CA of this replica is replaced by the one that all replicas share'])
  const { namespace, name } = caIn(first)
  assert.deepEqual(namedSecrets, [`${namespace}/${name}`, `${namespace}/${name}`], 'the name of the Secret is shown')
})

test('a CA that ends soon is kept as long as all have it', async () => {
  const [first, second] = [dataDir(), dataDir()]
  writeKeyPair(servingPkiDir(first), 'ca', createCA({ commonName: 'old', days: 10 }))
  for (const dir of [first, second]) {
    await shareCA(objects, caIn(dir), log)
    ensureServingCertificate(dir, true)
  }
  assert.deepEqual(pairIn(first), pairIn(second))
})

test('a namespace that is missing is made; where that is refused, the start is, with the fix', async () => {
  objects.namespaces = []
  const { create } = objects
  objects.create = (kind, object) => {
    if (kind !== NAMESPACES) return create.call(objects, kind, object)
    objects.namespaces = [NAMESPACE]
    return Promise.resolve(object)
  }
  await shareCA(objects, caIn(dataDir()), log)
  assert.ok(objects.find(SECRETS, 'ca', NAMESPACE) !== undefined)
  const poor = new MemoryObjects()
  let asked = 0
  poor.get = () => {
    asked++
    return Promise.reject(statusError('Forbidden', 'secrets "ca" is forbidden'))
  }
  // Its own one would be trusted by its own clients only.
  const own = dataDir()
  ensureServingCertificate(own)
  for (const dir of [dataDir(), own]) {
    await assert.rejects(shareCA(poor, caIn(dir), log), (error) => {
      assert.ok(error instanceof UserError)
      assert.match(
        error.message,
        /^the CA that all replicas share cannot be kept in Secret portcullis-system\/ca: .*forbidden$/,
      )
      assert.equal(error.fix, 'apply deploy/rbac/control-cluster.yaml, or do without')
      return true
    })
  }
  await shareCA(poor, { ...caIn(own), required: false }, log)
  assert.match(
    warnings[0] ?? '',
    /cannot be kept in Secret portcullis-system\/ca; this replica continues with its own$/,
  )
  assert.ok(asked > 2, 'the first refusal of a server that has just started is not final')
})

test('the API server away: a copy is used, and said; without one nothing is made up', async () => {
  const [first, second] = [dataDir(), dataDir()]
  await shareCA(objects, caIn(first), log)
  const before = pairIn(first)
  objects.away = true
  await shareCA(objects, caIn(first), log)
  assert.deepEqual(pairIn(first), before)
  assert.deepEqual(warnings, ['the CA that all replicas share cannot be read; the copy of this replica is used'])
  await assert.rejects(shareCA(objects, caIn(second), log), /cannot be read: connect ECONNREFUSED/)
  assert.equal(pairIn(second), undefined)
})

const SHARED = createCA({ commonName: 'shared' })
const OTHER = createCA({ commonName: 'other' })
const ED25519_KEY = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
const LEAF = issueCertificate(SHARED, { commonName: 'leaf', usage: 'server', dnsNames: ['localhost'] })
const ENDED = createCA({ commonName: 'shared', days: -1 })
const TOKEN_KEY = { 'token.key': 'key of all' }

function putSecret(data: Readonly<Record<string, string>>): void {
  const encoded = Object.entries(data).map(([key, text]) => [key, toBase64(text)])
  objects.put(SECRETS, { metadata: { name: 'ca', namespace: NAMESPACE }, data: Object.fromEntries(encoded) })
}

function secretOf({ certPem, keyPem }: KeyPair): Record<string, string> {
  return { 'tls.crt': certPem, 'tls.key': keyPem, ...TOKEN_KEY }
}

const BAD_SECRETS: readonly (readonly [string, Readonly<Record<string, string>>, RegExp])[] = [
  ['nothing', {}, /has no tls.crt/],
  ['no certificate', { ...secretOf(SHARED), 'tls.crt': 'x' }, /tls.crt is not a certificate/],
  ['a certificate that is no CA', secretOf(LEAF), /tls.crt is not a CA certificate/],
  ['a CA that has ended', secretOf(ENDED), /it expired on/],
  ['the key of another CA', secretOf({ ...SHARED, keyPem: OTHER.keyPem }), /tls.key does not belong to tls.crt/],
  ['no key', { ...secretOf(SHARED), 'tls.key': 'x' }, /tls.key is not a private key/],
  ['an Ed25519 key', { ...secretOf(SHARED), 'tls.key': ED25519_KEY }, /tls.key is neither an RSA nor an ECDSA key/],
  ['no key of tokens', { ...secretOf(SHARED), 'token.key': 'x' }, /token.key: this is no key/],
]
for (const [what, data, expected] of BAD_SECRETS) {
  test(`a Secret with ${what} is refused, changes nothing here, and one that is corrected is used`, async () => {
    const [empty, own] = [dataDir(), dataDir()]
    ensureServingCertificate(own)
    const before = [pairIn(own), pairIn(own, 'tls')]
    putSecret(data)
    for (const dir of [empty, own]) {
      await assert.rejects(shareCA(objects, caIn(dir), log), (error) => {
        assert.ok(error instanceof UserError)
        assert.match(error.message, expected)
        return true
      })
    }
    assert.deepEqual([pairIn(own), pairIn(own, 'tls')], before)
    assert.deepEqual(readdirSync(empty), [])
    assert.equal(readdirSync(servingPkiDir(own)).includes('token.key'), false)
    putSecret(secretOf(SHARED))
    for (const dir of [empty, own]) {
      await shareCA(objects, caIn(dir), log)
      assert.deepEqual(pairIn(dir), SHARED)
      assert.equal(read(dir, 'token.key'), 'key of all')
    }
  })
}

test('a copy that is damaged is replaced by a good Secret, with what it had issued; without one it is said', async () => {
  for (const damaged of ['ca.key', 'ca.crt']) {
    const dir = dataDir()
    const pki = servingPkiDir(dir)
    const old = createCA({ commonName: 'shared' })
    const foreign = issueCertificate(OTHER, { commonName: 'x', usage: 'server' })
    writeKeyPair(pki, 'ca', old)
    writeKeyPair(pki, 'tls', issueCertificate(old, { commonName: 'x', usage: 'server' }))
    writeKeyPair(pki, 'admin', foreign)
    writeFileSync(join(pki, damaged), 'damaged')
    objects = new MemoryObjects()
    await assert.rejects(shareCA(objects, caIn(dir), log), /are not a certificate and its key/)
    assert.equal(objects.find(SECRETS, 'ca', NAMESPACE), undefined, 'no other CA is made in its place')
    objects.away = true
    await assert.rejects(shareCA(objects, caIn(dir), log), /are not a certificate and its key/)
    objects.away = false
    assert.equal(read(dir, damaged), 'damaged')
    putSecret(secretOf(SHARED))
    await shareCA(objects, caIn(dir), log)
    assert.deepEqual(pairIn(dir), SHARED)
    assert.equal(pairIn(dir, 'tls'), undefined)
    assert.deepEqual(pairIn(dir, 'admin'), foreign)
  }
})

test('a key of tokens that is damaged, and a CA that has ended, do not become those of all', async () => {
  const dir = dataDir()
  writeKeyPair(servingPkiDir(dir), 'ca', ENDED)
  writeFileSync(join(servingPkiDir(dir), 'token.key'), 'damaged')
  await assert.rejects(shareCA(objects, caIn(dir), log), /token\.key: this is no key/)
  assert.equal(objects.find(SECRETS, 'ca', NAMESPACE), undefined)
  rmSync(join(servingPkiDir(dir), 'token.key'))
  await shareCA(objects, caIn(dir), log)
  const second = dataDir()
  await shareCA(objects, caIn(second), log)
  assert.deepEqual(pairIn(second), pairIn(dir))
  assert.notDeepEqual(pairIn(dir), ENDED)
})

test('a copy that was shared before needs no server: neither one that refuses, nor several attempts', async () => {
  const [dir, fresh] = [dataDir(), dataDir()]
  await shareCA(objects, caIn(dir), log)
  const shared = pairIn(dir)
  const errors = [
    statusError('Forbidden', 'RBAC is cold'),
    statusError('ServiceUnavailable', 'etcd'),
    new Error('no answer'),
  ]
  for (const error of errors) {
    let asked = 0
    const get = (): Promise<never> => {
      asked++
      return Promise.reject(error)
    }
    const away = { get, create: get }
    warnings = []
    await shareCA(away, caIn(dir), log, true)
    assert.deepEqual(pairIn(dir), shared)
    assert.deepEqual([asked, warnings.length], [1, 1], String(error))
    assert.match(warnings[0] ?? '', /the copy of this replica is used/)
    assert.equal(namedSecrets.at(-1), `${NAMESPACE}/${caIn(dir).name}`)
    // Without a copy there is nothing to use, whatever is said.
    await assert.rejects(shareCA(away, caIn(fresh), log, true), UserError)
  }
})

test('a server that takes connections and never answers does not keep a start that has copies', async (t) => {
  const dir = dataDir()
  for (const pki of [servingPkiDir(dir), controlPaths(dir).pki])
    writeKeyPair(pki, 'ca', createCA({ commonName: 'shared' }))
  const sockets: Socket[] = []
  let ended = 0
  const server = createServer((socket) => {
    sockets.push(socket)
    socket.on('error', quiet)
    socket.on('close', () => ended++)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const kubeconfig = join(dir, 'kubeconfig')
  const parts = [
    'apiVersion: v1',
    'kind: Config',
    `clusters: [{ name: c, cluster: { server: 'https://127.0.0.1:${port}' } }]`,
    'users: [{ name: u, user: { token: t } }]',
    'contexts: [{ name: x, context: { cluster: c, user: u } }]',
    'current-context: x',
  ]
  writeFileSync(kubeconfig, parts.join('\n'))
  const config = loadConfig({ flags: { source: 'kubernetes', dataDir: dir, kubeconfig }, env: {}, readFile: () => '' })
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  await sharePki(config, log, 100)
  // It went on while its connections were still being opened.
  assert.equal(ended, 0)
  assert.equal(warnings.length, 2)
  await waitFor('the connections', () => sockets.length > 0)
})

test('a CA that changes in the Secret while the gateway runs replaces the copy; one that cannot be used is refused once', async (t) => {
  const dir = dataDir()
  await shareCA(objects, caIn(dir), log)
  const [before, tokenKey] = [pairIn(dir), read(dir, 'token.key')]
  ensureServingCertificate(dir, true)
  const errors: string[] = []
  let looks = 0
  const get: MemoryObjects['get'] = (kind, at) => {
    looks++
    return objects.get(kind, at)
  }
  const later = async (): Promise<unknown> => {
    const seen = looks
    return await waitFor('further looks', () => looks >= seen + 3)
  }
  const ca = caIn(dir)
  const followed = followSharedPki(
    { get },
    [ca],
    { ...log, error: (_, fields) => void errors.push(String(fields?.['error'])) },
    10,
  )
  t.after(() => followed.stop())
  const bundle = { certPem: `${SHARED.certPem}${before?.certPem}`, keyPem: SHARED.keyPem }
  putSecret(secretOf(bundle))
  await waitFor('the new CA', () => pairIn(dir)?.certPem === bundle.certPem)
  assert.equal(pairIn(dir, 'tls'), undefined, 'what the one before had issued')
  assert.equal(read(dir, 'token.key'), tokenKey)
  for (const [what, data, says] of BAD_SECRETS) {
    errors.length = 0
    putSecret(data)
    await waitFor(what, () => followed.reloads.get('ca') === false)
    await later()
    assert.equal(errors.length, 1, what)
    assert.match(errors[0] ?? '', says)
    // Nothing is known while it cannot be read.
    objects.away = true
    await later()
    assert.equal(followed.reloads.get('ca'), false)
    objects.away = false
    assert.deepEqual(pairIn(dir), bundle)
    putSecret(secretOf(bundle))
    await waitFor('the good one', () => followed.reloads.get('ca') === true)
  }
})
