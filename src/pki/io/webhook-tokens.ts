// Tokens with which the kube-apiservers of one cell authenticate to the protection webhook, where they present no client
// certificate. A token is a MAC of the cell's name, so it is the same whenever it is computed; it does not expire, because a webhook
// that refuses its callers blocks all deletions. Replacing the key revokes it. Hexadecimal, because kube-apiserver allows only DNS
// names in the path of a webhook that is a Service (apiserver/pkg/util/webhook/validation.go).

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
 * @param keyPem of control-tokens.ts
 * @throws {UserError} when the key is none
 */
export function createWebhookTokens(keyPem: string): WebhookTokens {
  const secret = Buffer.from(String(readKey(keyPem).export({ format: 'jwk' }).d), 'base64url')
  const key = Buffer.from(hkdfSync('sha256', secret, '', PURPOSE, KEY_BYTES))
  const macOf = (cell: string): Buffer => createHmac('sha256', key).update(cell).digest()
  return {
    tokenOf: (cell) => macOf(cell).toString('hex'),
    isTokenOf: (cell, token) => {
      // Only the canonical spelling counts.
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
    // Said below.
  }
  throw new UserError('the token key is not an EC key', 'remove the file, and a new one is made')
}
