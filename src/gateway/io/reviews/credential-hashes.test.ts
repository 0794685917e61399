// Revoked credentials stay recognisable, however their holder rewrites them.

import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import { certificateHashes, isUnrecognisable, revocableTokenHash, tokenHashes } from './credential-hashes.ts'

/** P-256; both until 2126. */
const CA = `-----BEGIN CERTIFICATE-----
MIIBcjCCARegAwIBAgIUFjd0liiObuKGX1ohukNJCVR3wu4wCgYIKoZIzj0EAwIw
DTELMAkGA1UEAwwCY2EwIBcNMjYxMTIxMjMxMDAzWhgPMjEyNjEwMjgyMzEwMDNa
MA0xCzAJBgNVBAMMAmNhMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEKn2FCBzg
L9KeQ++gAG5s+owps6ympWT2OkdnKPapGM1XnUW6ktTxz+9SXY3n7acUMmpLhVy0
fB+Yhm3y6mQx+6NTMFEwHQYDVR0OBBYEFIMRQ3gXftWiknWr8X0/2jyZ9V6rMB8G
A1UdIwQYMBaAFIMRQ3gXftWiknWr8X0/2jyZ9V6rMA8GA1UdEwEB/wQFMAMBAf8w
CgYIKoZIzj0EAwIDSQAwRgIhAPFgDyfxF8/p+0HwyIpyDOElSmUV7D5L1ADrMy6J
ebUeAiEA9CdAdYBa8MBnZwqnf5UxMnALp2XtBBJME9E3CQNYt4Y=
-----END CERTIFICATE-----`
const ALICE = `-----BEGIN CERTIFICATE-----
MIIBKDCBzgIUOwCaUYHD4s1sUw6odajKb2HUZ4cwCgYIKoZIzj0EAwIwDTELMAkG
A1UEAwwCY2EwIBcNMjYxMTIxMjMxMDAzWhgPMjEyNjEwMjgyMzEwMDNaMB4xDDAK
BgNVBAoMA2RldjEOMAwGA1UEAwwFYWxpY2UwWTATBgcqhkjOPQIBBggqhkjOPQMB
BwNCAAS/N+pjmbpmQ1/tRK0KBcBNJaEFPSbKg7gVs/SNGLP7GHckDQj8JPiJax7M
P/6pu7q9MPnOwT22iwe+k80dMbLOMAoGCCqGSM49BAMCA0kAMEYCIQCehM/5t2sc
pRKUxSSF7nsS2b7JHltUHjgrZETJq0AQKQIhAMMaf16Ir/iUm07iSHgZuw1RPmbf
kCJ5J5UH8eC6Vqku
-----END CERTIFICATE-----`
/** Order of P-256 (FIPS 186-4, D.1.2.3). */
const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n

/** The signature (r, s) as (r, n-s): replaces the last element of a certificate. */
function resigned(der: Buffer): Buffer {
  const tbsAt = contentAt(der, 0)
  const algorithmAt = endAt(der, tbsAt)
  const bitsAt = endAt(der, algorithmAt)
  const signature = der.subarray(contentAt(der, bitsAt) + 1)
  const r = signature.subarray(2, 4 + (signature[3] ?? 0))
  const s = signature.subarray(r.length + 4)
  const other = integer(ORDER - BigInt(`0x${s.toString('hex')}`))
  const pair = Buffer.concat([r, other])
  const bits = Buffer.concat([Buffer.from([0x03, pair.length + 3, 0x00, 0x30, pair.length]), pair])
  const content = Buffer.concat([der.subarray(tbsAt, bitsAt), bits])
  const header = Buffer.from([0x30, 0x82, 0, 0])
  header.writeUInt16BE(content.length, 2)
  return Buffer.concat([header, content])
}

/** Start of a DER element's content; up to 64 KiB. */
function contentAt(der: Buffer, at: number): number {
  const length = der[at + 1] ?? 0
  return at + 2 + (length < 0x80 ? 0 : length - 0x80)
}

function endAt(der: Buffer, at: number): number {
  const from = contentAt(der, at)
  return from + (from === at + 2 ? (der[at + 1] ?? 0) : der.readUIntBE(at + 2, from - at - 2))
}

function integer(value: bigint): Buffer {
  const hex = value.toString(16)
  const bytes = Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex')
  const padded = (bytes[0] ?? 0) >= 0x80 ? Buffer.concat([Buffer.from([0]), bytes]) : bytes
  return Buffer.concat([Buffer.from([0x02, padded.length]), padded])
}

test('a certificate whose signature was rewritten is another file, as valid, and recognised', () => {
  const alice = new X509Certificate(ALICE)
  const forged = new X509Certificate(resigned(alice.raw))
  assert.notEqual(forged.fingerprint256, alice.fingerprint256)
  assert.ok(forged.verify(new X509Certificate(CA).publicKey), 'still signed by the CA')
  const [whole, signed] = certificateHashes(alice.raw)
  const [otherWhole, otherSigned] = certificateHashes(forged.raw)
  assert.equal(whole, alice.fingerprint256.replaceAll(':', '').toLowerCase())
  assert.notEqual(otherWhole, whole)
  assert.ok(signed !== undefined && signed.length === 64)
  assert.equal(otherSigned, signed)
})

test('certificates of one user differ in both hashes', () => {
  const [whole, signed] = certificateHashes(new X509Certificate(ALICE).raw)
  const [otherWhole, otherSigned] = certificateHashes(new X509Certificate(CA).raw)
  assert.notEqual(whole, otherWhole)
  assert.notEqual(signed, otherSigned)
})

test('anything but a certificate has only the hash of its bytes', () => {
  for (const bytes of [
    [],
    [0x30],
    [0x30, 0x82],
    [0x30, 0x82, 0xff, 0xff, 0x30, 0x05],
    [0x31, 0x00],
    [0x30, 0x80, 0x30, 0x80],
  ]) {
    assert.equal(certificateHashes(Buffer.from(bytes)).length, 1)
  }
})

test('an opaque token has one hash, that of its text', () => {
  const sha256OfAbc = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'
  assert.deepEqual(tokenHashes('abc'), [sha256OfAbc])
  assert.equal(revocableTokenHash('abc'), sha256OfAbc)
})

test('a JWT is recognised by header and claims, however its signature is rewritten', () => {
  const token = 'eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJjYXJvbCJ9.AAAA'
  for (const same of [
    `${token.slice(0, -4)}BBBB`,
    token.replace('.', '.\t'),
    token.replace('J9.e', 'J-.e').replace('J-.e', 'J9=.e'),
  ]) {
    assert.equal(revocableTokenHash(same), revocableTokenHash(token), same)
    assert.notEqual(tokenHashes(same)[0], tokenHashes(token)[0])
  }
  assert.notEqual(revocableTokenHash('eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJkYXZlIn0.AAAA'), revocableTokenHash(token))
})

test('a JWT as a JSON object is recognised as such', () => {
  assert.ok(isUnrecognisable('{"payload":""}'))
  assert.ok(isUnrecognisable('\t{"payload":""}'))
  assert.ok(!isUnrecognisable('eyJhbGciOiJFUzI1NiJ9.e.A'))
})

test('a token without three parts is not a JWT, and its white space counts', () => {
  for (const token of ['a.b', 'a.b.c.d', 'a.b.c.', '....', '.', 'a b'])
    assert.equal(tokenHashes(token).length, 1, token)
  assert.equal(tokenHashes('..').length, 2)
  assert.notEqual(tokenHashes('a b')[0], tokenHashes('ab')[0])
})
