import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { parse } from 'yaml'
import { controlPaths } from '../../gateway/io/listener/control-paths.ts'
import { ensureControlPki } from '../../pki/io/control-pki.ts'
import { createTokenVerifier } from '../../pki/io/control-tokens.ts'
import { createWebhookTokens } from '../../pki/io/webhook-tokens.ts'
import { USER_WRITTEN_KINDS } from '../../program/api/scheme.ts'
import { openSqliteStore } from '../io/store/store.ts'
import { OBJECTS_WEBHOOK, WEBHOOK_PATH } from '../webhooks/webhook.ts'
import { backupControlStore, printControlKubeconfig, printControlWebhook, webhookConfiguration } from './control.ts'

const dataDir = mkdtempSync(join(tmpdir(), 'portcullis-control-'))
after(() => rmSync(dataDir, { recursive: true }))
const pki = ensureControlPki(join(dataDir, 'control', 'pki'), ['localhost'])

function run(
  command: (output: { out(text: string): void; err(text: string): void }) => number,
): [number, string, string] {
  let [out, err] = ['', '']
  const code = command({ out: (text) => (out += text), err: (text) => (err += text) })
  return [code, out, err]
}

describe('control kubeconfig', () => {
  const common = {
    dataDir,
    user: 'dora',
    groups: ['portcullis:viewers'],
    server: 'https://localhost:9443',
    now: Date.now,
  }

  test('with a certificate, or with a token', () => {
    const [code, withCertificate] = run((output) => printControlKubeconfig({ ...common, ...output }))
    assert.equal(code, 0)
    assert.ok(parse(withCertificate).users[0].user['client-certificate-data'].length > 100)
    const [, withToken] = run((output) => printControlKubeconfig({ ...common, tokenTtl: '1h', ...output }))
    const { user } = parse(withToken).users[0]
    const verified = createTokenVerifier(pki.tokenKey).verify(user.token, Date.now())
    assert.deepEqual([verified?.name, verified?.groups], ['dora', ['portcullis:viewers']])
  })

  test('the server is the one of the last start, whatever its port', () => {
    const { server: _, ...rest } = common
    const serverNow = (): string =>
      parse(run((output) => printControlKubeconfig({ ...rest, ...output }))[1]).clusters[0].cluster.server
    assert.equal(serverNow(), 'https://localhost:9443')
    ensureControlPki(join(dataDir, 'control', 'pki'), ['localhost'], { server: 'https://gateway.example.com:19443' })
    assert.equal(serverNow(), 'https://gateway.example.com:19443')
  })

  test('errors are one line each, with the fix', () => {
    const elsewhere = run((output) => printControlKubeconfig({ ...common, dataDir: join(dataDir, 'none'), ...output }))
    assert.equal(elsewhere[0], 1)
    assert.match(elsewhere[2], /^error: .*;.*\n$/)
    const forever = run((output) => printControlKubeconfig({ ...common, tokenTtl: 'forever', ...output }))
    assert.deepEqual(
      [forever[0], forever[2]],
      [1, 'error: --token-ttl "forever" is not a duration; write for example 12h or 30m\n'],
    )
  })
})

test('control backup copies the store of a gateway that runs', () => {
  const store = openSqliteStore({ file: join(dataDir, 'control', 'objects.db'), key: undefined })
  const at = { resource: 'namespaces', namespace: '', name: 'a' }
  store.write([{ ...at, object: { metadata: { name: 'a' } }, expected: 0 }])
  const file = join(dataDir, 'copy.db')
  assert.equal(run((output) => backupControlStore({ dataDir, file, ...output }))[0], 0)
  store.close()
  assert.ok(existsSync(file))
  const copy = openSqliteStore({ file, key: undefined })
  assert.equal(copy.count('namespaces', { namespace: '' }), 1)
  copy.close()
  assert.match(run((output) => backupControlStore({ dataDir, file, ...output }))[2], /exists already; name a file/)
  const elsewhere = join(dataDir, 'elsewhere')
  const [code, , err] = run((output) =>
    backupControlStore({ dataDir: elsewhere, file: join(dataDir, 'b.db'), ...output }),
  )
  assert.deepEqual([code, existsSync(elsewhere)], [1, false])
  assert.match(err, /^error: there is no store at .*elsewhere.*; name the --data-dir/)
})

const DEPLOYED = new URL('../../../deploy/webhook/validating-webhook.yaml', import.meta.url)

test('it is what deploy/webhook has, but for the CA and the token', () => {
  const service = { namespace: 'portcullis-system', name: 'portcullis', port: 9443, path: `${WEBHOOK_PATH}/TOKEN` }
  assert.deepEqual(
    webhookConfiguration({ service, caBundle: '' }, USER_WRITTEN_KINDS),
    parse(readFileSync(DEPLOYED, 'utf8')),
  )
})

test('the token is the one that the webhook takes, the CA that of its certificate', (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'portcullis-webhook-'))
  t.after(() => rmSync(dataDir, { recursive: true, force: true }))
  const { caPem, tokenKey } = ensureControlPki(controlPaths(dataDir).pki, ['localhost'])
  const texts: string[] = []
  const err = (line: string): void => assert.fail(line)
  const out = (text: string): void => void texts.push(text)
  assert.equal(
    printControlWebhook({ kinds: USER_WRITTEN_KINDS, dataDir, url: 'https://gateway:9443/', port: 9443, out, err }),
    0,
  )
  const [first] = parse(texts.join('')).webhooks
  assert.equal(Buffer.from(first.clientConfig.caBundle, 'base64').toString(), caPem)
  const [, token = ''] = first.clientConfig.url.split('https://gateway:9443/admission/')
  assert.ok(createWebhookTokens(tokenKey).isTokenOf(OBJECTS_WEBHOOK, token))
})

test('what is missing is said', () => {
  const said: string[] = []
  const err = (line: string): void => void said.push(line)
  const parts = { kinds: USER_WRITTEN_KINDS, dataDir: '/none', port: 9443, out: () => undefined, err }
  assert.equal(printControlWebhook({ ...parts, url: 'https://a:1' }), 1)
  assert.match(said.join(''), /^error: /)
})
