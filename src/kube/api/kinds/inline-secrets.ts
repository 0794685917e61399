// Keys and tokens written inline in an object instead of in a Secret: which fields hold them, how they are redacted, and how to detect a copy of them
// in a text.

import type { ResourceKind } from '../resource-kind.ts'

/** PEM of a private key, of any algorithm: it may be among certificates (RFC 7468 section 10, RFC 5958, PKCS #1, SEC 1). */
const PRIVATE_KEY = /-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----/

/** What PEM of a private key looks like in base64: one text per alignment of its first byte in a group of three. */
const PRIVATE_KEY_BASE64 = [0, 1, 2].map((shift) => {
  const words = Buffer.from(`${'.'.repeat(shift)}PRIVATE KEY-----`)
  // The first and last characters depend on the adjacent bytes.
  return words
    .subarray(0, words.length - (words.length % 3))
    .toString('base64')
    .slice(shift === 0 ? 0 : 4)
})

/** @param base64 value of a field that should be public: certificates */
export function holdsPrivateKey(base64: string): boolean {
  return PRIVATE_KEY.test(Buffer.from(base64, 'base64').toString('latin1'))
}

/** Whether an object, as JSON, must be protected like a Secret. False positives are possible. */
export function mayHoldSecret(kind: ResourceKind, json: string): boolean {
  return mentionsInlineSecret(kind, json) || PRIVATE_KEY_BASE64.some((part) => json.includes(part))
}

const mentions = new WeakMap<ResourceKind, RegExp>()

/**
 * Whether a text (JSON, JSON within JSON, YAML) names a field of secret bytes and so may hold a copy of them. Names in managedFields (`f:keyData`) do
 * not count: no value follows.
 */
export function mentionsInlineSecret(kind: ResourceKind, text: string): boolean {
  const { inlineSecrets = [] } = kind
  if (inlineSecrets.length === 0) return false
  let pattern = mentions.get(kind)
  if (pattern === undefined) {
    const names = new Set(inlineSecrets.map((path) => path.at(-1) ?? ''))
    pattern = new RegExp(`(?<!f:)\\b(?:${[...names].join('|')})\\b`)
    mentions.set(kind, pattern)
  }
  return pattern.test(text)
}
