// Tokens with which one cell's kube-apiservers authenticate to the protection webhook if they present no client certificate. A token is a MAC of the
// cell's name, so it is always the same; it does not expire, because a webhook that rejects its callers blocks all deletions. Replacing the key
// revokes it. Hexadecimal, because kube-apiserver only allows DNS names in the path of a webhook that is a Service
// (apiserver/pkg/util/webhook/validation.go).

import { createHmac, createPrivateKey, hkdfSync, type KeyObject, timingSafeEqual } from 'node:crypto'
import { UserError } from '../../kit/api/validation/field-errors.ts'

export interface WebhookTokens {
  tokenOf(cell: string): string
  isTokenOf(cell: string, token: string): boolean
}

/** These tokens use a key derived from the one that signs other tokens. */
const PURPOSE = 'portcullis protection webhook token v1'
const KEY_BYTES = 32

/**
 * @param keyPem from control-tokens.ts
 * @throws {UserError} if the key is invalid
 */
export function createWebhookTokens(keyPem: string): WebhookTokens {
  const secret = Buffer.from(String(readKey(keyPem).export({ format: 'jwk' }).d), 'base64url')
  const key = Buffer.from(hkdfSync('sha256', secret, '', PURPOSE, KEY_BYTES))
  const macOf = (cell: string): Buffer => createHmac('sha256', key).update(cell).digest()
  return {
    tokenOf: (cell) => macOf(cell).toString('hex'),
    isTokenOf: (cell, token) => {
      // Only the canonical spelling is valid.
      if (!/^[0-9a-f]{64}$/.test(token)) return false
      return timingSafeEqual(macOf(cell), Buffer.from(token, 'hex'))
    },
  }
}

function readKey(pem: string): KeyObject {
  try {
    const key = createPrivateKey(pem)
    if (key.asymmetricKeyType === 'ec') return key
  } catch {
    // Reported below.
  }
  throw new UserError('the token key is not an EC key', 'remove the file, and a new one is created')
}
