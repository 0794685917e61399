import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { parse } from 'yaml'
import { controlPaths } from '../../gateway/io/listener/control-paths.ts'
import { ensureControlPki } from '../../pki/io/control-pki.ts'
import { createWebhookTokens } from '../../pki/io/webhook-tokens.ts'
import { USER_WRITTEN_KINDS } from '../../program/api/scheme.ts'
import { OBJECTS_WEBHOOK, WEBHOOK_PATH } from '../webhooks/webhook.ts'
import { printControlWebhook, webhookConfiguration } from './webhook.ts'

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
