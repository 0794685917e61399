import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { stringify } from 'yaml'
import { revocableTokenHash } from '../../gateway/io/reviews/credential-hashes.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { toBase64 } from '../../kit/core/text/base64.ts'
import { createCA, issueCertificate } from '../../pki/io/pki.ts'
import { certificateSubject, tokenSubject } from './revoked-subject.ts'

const dir = mkdtempSync(join(tmpdir(), 'portcullis-'))
after(() => rmSync(dir, { recursive: true }))
const ca = createCA({ commonName: 'ca' })
const certificateOf = (commonName: string): string => issueCertificate(ca, { commonName, usage: 'client' }).certPem
const PEMS = { alice: certificateOf('alice'), mallory: certificateOf('mallory') }

function file(name: string, text: string): string {
  const path = join(dir, name)
  writeFileSync(path, text)
  return path
}

const inline = (name: keyof typeof PEMS): object => ({
  name,
  user: { token: `${name}-token`, 'client-certificate-data': toBase64(PEMS[name]) },
})

function kubeconfig(fields: object): object {
  const contexts = ['alice', 'mallory', 'gone'].map((user) => ({ name: `as-${user}`, context: { cluster: 'c', user } }))
  return { apiVersion: 'v1', kind: 'Config', contexts, users: [inline('alice'), inline('mallory')], ...fields }
}

test('for a kubeconfig, the user of the current context is revoked and named', () => {
  const config = kubeconfig({ 'current-context': 'as-mallory' })
  for (const text of [
    stringify(config),
    JSON.stringify(config),
    stringify(config).replace('kind: Config', 'kind: "Config"'),
  ]) {
    const path = file('kubeconfig', text)
    const token = tokenSubject(path)
    assert.equal(token.subject.tokenHash, revocableTokenHash('mallory-token'))
    assert.equal(token.text, `the token of user "mallory" of ${path}`)
    const { name, subjects, text: said } = certificateSubject(path)
    assert.equal(name, 'CN=mallory')
    assert.deepEqual(subjects, certificateSubject(file('mallory.crt', PEMS.mallory)).subjects)
    assert.match(said, /^the certificate of CN=mallory \(SHA-256 [0-9a-f]{64}\), user "mallory" of .*kubeconfig$/)
  }
})

test('no credential is revoked when it is unclear which one is meant', () => {
  for (const fields of [
    {},
    { 'current-context': '' },
    { 'current-context': 'nowhere' },
    { 'current-context': 'as-gone' },
    { 'current-context': 'as-mallory', users: [inline('alice'), inline('mallory'), inline('mallory')] },
  ]) {
    const path = file('unclear', stringify(kubeconfig(fields)))
    for (const read of [tokenSubject, certificateSubject]) {
      assert.throws(
        () => read(path),
        (error) => error instanceof UserError && /several users, and .* none of them$/.test(error.message),
      )
    }
  }
  // With a single one there is no choice.
  const single = file('single', stringify(kubeconfig({ users: [inline('alice')] })))
  assert.equal(tokenSubject(single).subject.tokenHash, revocableTokenHash('alice-token'))
})

test('credentials in files beside the kubeconfig are read; a user without one is refused', () => {
  file('m.crt', PEMS.mallory)
  file('m.token', 'from-a-file\n')
  const user = { 'client-certificate': 'm.crt', tokenFile: 'm.token', token: 'outranked by the file' }
  const config = kubeconfig({ 'current-context': 'as-mallory', users: [inline('alice'), { name: 'mallory', user }] })
  const path = file('files', stringify(config))
  assert.equal(tokenSubject(path).subject.tokenHash, revocableTokenHash('from-a-file'))
  assert.equal(certificateSubject(path).name, 'CN=mallory')
  const exec = { name: 'mallory', user: { exec: { command: 'login' } } }
  const plugin = file(
    'plugin',
    stringify(kubeconfig({ 'current-context': 'as-mallory', users: [inline('alice'), exec] })),
  )
  assert.throws(() => tokenSubject(plugin), /user "mallory" of .*plugin has no token/)
  assert.throws(() => certificateSubject(plugin), /user "mallory" of .*plugin has no client certificate/)
})

test('for a JWT, its user and its id are printed', () => {
  const part = (claims: object): string => Buffer.from(JSON.stringify(claims)).toString('base64url')
  const token = `${part({ alg: 'none' })}.${part({ sub: 'bot', jti: '0a77' })}.c2ln`
  assert.equal(tokenSubject(file('jwt', `${token}\n`)).text, 'the token of "bot" (JTI=0a77)')
  assert.equal(tokenSubject(file('opaque', 'abc')).text, 'the token')
})
