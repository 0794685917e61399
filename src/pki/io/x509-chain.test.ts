import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import { userFromCertificate } from '../core/user-from-cert.ts'
import { createCA, issueCertificate } from './pki.ts'
import { subjectOf } from './x509-chain.ts'

const ca = createCA({ commonName: 'ca' })

/** Characters that printing could hide: each that separates, escapes or quotes in some printed form of a name. */
const NAMES = [
  'system:node:ip-10-0-0-1.ec2.internal',
  'alice@example.com',
  'a+O=system:masters',
  'a\nO=system:masters',
  'a\\nO=system:masters',
  'a, O=system:masters',
  'a/O=system:masters',
  '"a"',
  '#6162',
  'O=system:masters',
  'ä',
  '名',
  ' a ',
  'a b',
]

for (const name of NAMES) {
  test(`${JSON.stringify(name)}, as name and as group, is read as it was written`, () => {
    const groups = ['first', name, 'last', 'first']
    const { certPem } = issueCertificate(ca, { commonName: name, organizations: groups, usage: 'client' })
    const user = userFromCertificate(subjectOf(new X509Certificate(certPem)), '')
    assert.ok(user !== undefined && !('error' in user))
    assert.equal(user.name, name)
    assert.deepEqual(user.groups, [...groups, 'system:authenticated'])
  })
}

test('a uid is read beside them', () => {
  const options = { commonName: 'a', organizations: ['b'], uid: 'c', usage: 'client' } as const
  const subject = subjectOf(new X509Certificate(issueCertificate(ca, options).certPem))
  const user = userFromCertificate(subject, '')
  assert.ok(user !== undefined && !('error' in user))
  assert.deepEqual([user.name, user.uid, user.groups[0]], ['a', 'c', 'b'])
})
