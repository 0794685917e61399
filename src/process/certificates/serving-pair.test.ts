import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { readPairFiles } from './serving-pair.ts'

test('a certificate that TLS refuses is refused when it is read, not in each handshake', () => {
  const dir = mkdtempSync(join(tmpdir(), 'portcullis-pair-'))
  const openssl = (args: string): unknown => execFileSync('openssl', args.split(' '), { cwd: dir, stdio: 'pipe' })
  const read = (): unknown =>
    readPairFiles(
      { flag: '--tls-cert-file', file: join(dir, 'tls.crt') },
      { flag: '--tls-private-key-file', file: join(dir, 'tls.key') },
    )
  try {
    const ec = '-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes'
    openssl(`req -x509 ${ec} -keyout ca.key -out ca.crt -days 1 -subj /CN=ca`)
    openssl(`req ${ec} -keyout tls.key -out tls.csr -subj /CN=gateway`)
    openssl('x509 -req -in tls.csr -CA ca.crt -CAkey ca.key -CAcreateserial -sha1 -days 1 -out tls.crt')
    assert.throws(read, (error) => {
      assert.ok(error instanceof UserError)
      assert.match(error.message, /^--tls-cert-file .*tls\.crt cannot be used for TLS: .*md too weak$/)
      return true
    })
    openssl('x509 -req -in tls.csr -CA ca.crt -CAkey ca.key -CAcreateserial -sha256 -days 1 -out tls.crt')
    assert.doesNotThrow(read)
    writeFileSync(join(dir, 'tls.key'), 'no key')
    assert.throws(read, /holds no PEM private key/)
  } finally {
    rmSync(dir, { recursive: true })
  }
})
